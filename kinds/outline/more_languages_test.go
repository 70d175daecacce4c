package outline

var moreOutlines = []struct{ name, file, text, want string }{
	{"java", "A.java", `/*
 * Licensed to the Apache Software Foundation (ASF).
 * More.
 */
package a.b;

import java.util.List;

/**
 * Finds widgets. Fast.
 * @since 1
 */
@Entity(name = "x")
public abstract class Finder<T extends Comparable<T>>
        extends Base<T>
        implements Closeable {

    public static final String S = """
        public void inText() {}
        """;
    private int n = compute(1);
    // public void commented() {}
    public Finder(int n) { this.n = n; }
    public static <K, V extends List<? super K>> Map<K, List<V>> find(
            K key,
            @Nullable V value) throws IOException {
        return new Other(1);
    }
    @Override public String toString() { return "}{\""; }
    public int[] sizes()
    {
    }
    protected void hook() {}
    void internal() {}
    public interface Visitor {
        void visit(Node n);
        default boolean done() { return false; }
        private void no() {}
    }
    private static class Secret {
        public void hidden() {}
    }
    public final void last() {}
}

public sealed interface Shape permits Circle {
    double area();
}
public record Point(int x, int y) {}
public @interface Marker {}
public enum Color { RED; public int rgb() { return 0; } }
class Internal { public void hidden() {} }
`, `Finds widgets.
14 class Finder
24 method Finder.find
29 method Finder.toString
30 method Finder.sizes
35 interface Finder.Visitor
36 method Finder.Visitor.visit
37 method Finder.Visitor.done
43 method Finder.last
46 interface Shape
47 method Shape.area
49 record Point
50 interface Marker
51 enum Color
`},
	{"c#", "A.cs", "\ufeff" + `#region It's a region
using System;
namespace A.B
{
    /// <summary>x</summary>
    [Serializable]
    public sealed partial class Service<T> : IService where T : class, new()
    {
        private const string Path = @"c:\";
        public string Name { get; set; }
        public int Count => Compute(1);
        public Service(int x) : base(x) { }
        [HttpGet("{id}")] public async Task<IActionResult> Get<U>(int id)
        {
            return new Foo(1);
        }
        public (int, string) Pair() => (1, "public void No() {}");
        public override string ToString() => $"{Name}";
        public static implicit operator int(Service<T> s) => 1;
        public delegate void Handler(int x);
        internal void Hidden() { }
        protected internal void Hidden2() { }
        public new T? Find(string s)
        { }
    }
    public interface IRepo
    {
        Task<int> Save(int x);
    }
    internal class Internal
    {
        public void Hidden() { }
    }
    public readonly record struct P(int X);
    public enum E : byte { A }
}
`, `
7 class Service
13 method Service.Get
17 method Service.Pair
18 method Service.ToString
23 method Service.Find
26 interface IRepo
28 method IRepo.Save
34 struct P
35 enum E
`},
	{"c#: namespace of a file", "B.cs",
		"namespace X.Y;\n\npublic static class Ext\n{\n" +
			"    public static void Run(this int x) {}\n}\npublic record R(int A);\n",
		"\n3 class Ext\n5 method Ext.Run\n7 record R\n"},
	{"c", "a.h", `/* SPDX-License-Identifier: GPL-2.0 */
/*
 * list.h - linked lists
 *
 * Copyright (C) 2000
 */
#ifndef LIST_H
#define MIN(a, b) \
int not_a_function(int a)
#define X 1
extern int counter;
struct node {
	int value;
};
struct forward;
typedef struct list {
	struct node *head;
} list_t;
typedef struct pair {
} pair;
typedef unsigned long (*callback)(int, void *);
typedef unsigned int uint;
typedef enum { A, B } letters;
enum color { RED };
union u
{
	int i;
};
struct node *find(const struct node *list,
		  int value);
extern void *alloc(size_t n) __attribute__((malloc));
static inline int hidden(void) { return 0; }
static int
hidden2 (void)
{
}
unsigned int
gnu_style (int a)
{
	return call(a);
}
/*
int commented(void);
*/
int main(int argc, char **argv) {
	printf("\
int in_string(void) {");
}
int table[] = { f(1) };
int x = f(2);
`, `list.h - linked lists
12 struct node
16 struct list
18 type list_t
19 struct pair
21 type callback
22 type uint
23 type letters
24 enum color
25 union u
29 func find
31 func alloc
38 func gnu_style
45 func main
`},
	{"c++", "a.cpp", `//===-- a.cpp - Widgets of all kinds ---*- C++ -*-===//
//
// Part of the LLVM Project, under the Apache License v2.0
namespace a {
template <typename T, int N = 3>
class Widget final : public Base<T> {
 public:
  void member();
};
enum class Kind : int { A };
template <typename T>
T max(T a, T b) { return a > b ? a : b; }
void Widget::draw(const std::vector<int>& v) const {
}
std::map<int, std::string> ns::Widget::all() {
}
Widget::Widget(int x) : x_(x) {}
using Callback = std::function<void(int)>;
using namespace std;
const char* raw = R"(
int in_raw(int x);
)";
int million = 1'000'000;
auto trailing(int x) -> int;
extern "C" int exported(void);
class Forward;
}
`, `a.cpp - Widgets of all kinds
6 class Widget
10 enum Kind
12 func max
13 method Widget.draw
15 method ns::Widget.all
18 type Callback
24 func trailing
25 func exported
`},
	{"ruby", "a.rb", `# frozen_string_literal: true

# Finds things. Fast.
require 'x'
=begin
class Commented
end
=end
module Tools
  class Error < StandardError; end

  class Backend < Base
    TEXT = <<~SQL
      class InHeredoc
      def in_heredoc
    SQL
    def initialize(a)
      @a = "def x"
    end
    def valid?; true; end
    def name=(v)
      v.each do |x|
      end
    end
    def self.build(a,
                   b)
    end
    class << self
      def create; end

      private

      def hidden1; end
    end
    def _internal; end

    private

    def hidden
    end
    def self.still_public; end
  end

  def self.version = "1"
end
def top; end
__END__
def after; end
`, `Finds things.
9 module Tools
10 class Tools::Error
12 class Tools::Backend
17 method Tools::Backend.initialize
20 method Tools::Backend.valid?
21 method Tools::Backend.name=
25 method Tools::Backend.build
29 method Tools::Backend.create
41 method Tools::Backend.still_public
44 method Tools.version
46 func top
`},
	{"php", "a.php", `<p>Don't</p>
<?php
declare(strict_types=1);
/**
 * Mailer of the shop.
 *
 * @package X
 */
namespace App\Mail;

use Foo\Bar;

# class Commented {}
#[Attribute(Attribute::TARGET_CLASS)]
final class Mailer extends Base implements X
{
    use SomeTrait;
    private $sql = "
    public function inString() {}
    ";
    public function __construct(private int $a) {}
    #[Pure] 
    public static function &make(
        string $x
    ): ?static {
        return function () {};
    }
    function implicit() {}
    private function hidden() {}
    protected function hook() {}
    public function text() {
        return <<<EOT
    public function inHeredoc() {}
    EOT;
    }
    abstract public function later(): void;
}
interface HasName { public function name(): string; }
trait T {}
enum Suit: string { case A = 'a'; }
if (!function_exists('helper')) {
    function helper() {}
}
function top() {}
?>
<b>function html() {}</b>
`, `
15 class Mailer
23 method Mailer.make
28 method Mailer.implicit
31 method Mailer.text
36 method Mailer.later
38 interface HasName
39 trait T
40 enum Suit
42 func helper
44 func top
`},
	{"invalid UTF-8", "a.py", "# \xff\xfe doc\x1b[31m\nclass A\xff:\n  def \xff(self): ...\n  def ok(self): ...\n",
		"\ufffd doc [31m\n2 class A\n4 method A.ok\n"},
	{"unterminated", "a.js", "x = `\nexport const a = 1;\n/* \nexport const b = 1;", "\n2 const a\n4 const b\n"},
}
