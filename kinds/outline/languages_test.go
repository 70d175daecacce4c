package outline

// outlines are texts with the outlines that are expected of them, as show prints them.
var outlines = append([]struct{ name, file, text, want string }{
	{"go", "a.go", `// Copyright 2026 The Authors.

// Package a does things, e.g. this one. It is small.
package a

//line other.go:100
type T[K comparable, V any] struct{ Field int }
type hidden struct{}
type Alias = T[int, int]

func (t *T[K, V]) Get(
	key K,
) V {
	return *new(V)
}
func (t T[K, V]) unexported() {}
func (h *hidden) Method()     {}
func (*Plain) Method()        {}

/* func Commented() {} */
const text = "\nfunc InString() {}\n"
const (
	A, b = iota, iota
	C, _
)
var X, Y = 1, 2
func main() {}
`, `Package a does things, e.g. this one.
7 type T
9 type Alias
11 method T.Get
18 method Plain.Method
23 const A
24 const C
26 var X
26 var Y
`},
	{"go: program with errors", "cmd/main.go", "package main\n\nfunc main() {}\n\n" +
		"func Broken( {\n\ntype T struct{}\n", `
3 func main
5 func Broken
broken
`},
	{"go: no package", "a.go", "func F() {}", "\nbroken\n"},
	{"python", "a.py", `#!/usr/bin/env python3
# -*- coding: utf-8 -*-
# Copyright (c) 2024 Someone
"""Tools for
widgets. More text.

class NotAClass:
    def not_a_method(self): ...
"""
import os

TEXT = '''
def not_a_function():
'''  # def no
@decorator(
    "x",
)
class Widget(
    Base[int],
    metaclass=Meta,
):
    """class Inner:"""
    size: int = 1
    table = {
        "a": 1,
    }

    def __init__(self):
        def nested(): ...

    @property
    def name(self) -> str:
        return "def x():"

    @name.setter
    def name(self, v): ...

    if TYPE:
        def conditional(self): ...

    async def run(self, a,
                  b): ...

    def _private(self): ...

class _Hidden:
    def method(self): ...

class Größe: pass
async def fetch(url: str): ...
def generic[T](x: T) -> T:
    def inner(): ...
def _helper(): ...
`, `Tools for widgets.
18 class Widget
32 method Widget.name
41 method Widget.run
49 class Größe
50 func fetch
51 func generic
`},
	{"python: CRLF, tabs and a raw docstring", "a.pyi",
		"r'''Doc of it.'''\r\n" +
			"class A:\r\n\tdef f(self): ...\r\n\r\n\tdef g(self): ...\r\n",
		"Doc of it.\n2 class A\n3 method A.f\n5 method A.g\n"},
	{"javascript", "a.mjs", "/**\n * @fileoverview Parses `things`. Fast.\n * @license MIT\n */\n'use strict';\n" + `
import x from './x';
// export function commented() {}
/* export class
export class Commented {}
*/
const t = ` + "`\nexport const inTemplate = ${x ? `\nexport const nested` : '//'};\n`;" + `
const re = /[/"'` + "`" + `]/;
export function plain(a, b) {}
export default class Main extends Base {
  method() {}
}
export async function* generate() {}
export const a = 1, b = 2;
export let $c;
export const { d, e: f } = t;
export {
  plain as renamed,
  x,
};
export * as ns from './ns';
export * from './all';
function local() {}
`, `Parses ` + "`things`" + `.
17 func plain
18 class Main
21 func generate
22 const a
23 var $c
24 export d
24 export f
26 export renamed
27 export x
29 export ns
`},
	{"javascript: CommonJS", "a.js", `exports.a = function () {};
module.exports.b = 1;
exports.a === 1;
module.exports = Thing;
module.exports = { c, d: dd, e() {} };
function local() {}
export default {
`, "\n1 export a\n2 export b\n4 default Thing\n5 export c\n5 export d\n7 default default\n"},
	{"javascript: no exports", "a.jsx",
		"function App() {\n  return <p>Don't {`x`}</p>;\n}\n" +
			"class C {}\nasync function f() {}\n  function g() {}\n",
		"\n1 func App\n4 class C\n5 func f\n"},
	{"typescript", "a.ts", `// Types of the API.
export interface Props<T> extends Base { a: string }
export type Id = string | number;
export const enum Color { Red }
export enum Size { S }
export abstract class Repo<T extends object = {}> {
  public find(): T {}
}
export declare function external(x: number): void;
export declare const VERSION: string;
export namespace N {}
export type { Other } from './other';
export default function () {}
@Injectable()
export class Service {}
export function over(a: string): void;
export function over(a: number): void;
export default Service;
type Local = 1;
`, `Types of the API.
2 interface Props
3 type Id
4 enum Color
5 enum Size
6 class Repo
9 func external
10 const VERSION
11 module N
12 export Other
13 default default
15 class Service
16 func over
18 default Service
`},
	{"rust", "lib.rs", `// Copyright 2020 Rust people
//! A crate for x. Yes.
#![allow(dead_code)]
/* pub fn commented() {} */
const S: &str = "
pub fn in_string() {}
";
const R: &str = r#"
pub fn in_"raw() {}
"#;
#[derive(Debug)]
pub struct Parser<'a, T: 'a> { pub field: &'a T, c: char }
pub(crate) struct Internal;
pub unsafe trait Visit<T> {
    type Out;
    fn visit(&self, q: char) -> bool { q == '"' }
}
impl<'a, T: Into<Vec<T>>, F: Fn(u8) -> u8> Parser<'a, T>
where
    T: Clone,
{
    pub const MAX: usize = 1;
    pub fn new() -> Self {
        fn inner() {}
    }
    pub async unsafe fn run<U>(
        &self,
    ) {}
    fn private(&self) {}
    pub(crate) fn internal(&self) {}
}
impl<T> std::fmt::Display for Parser<'_, T> {
    fn fmt(&self) {}
}
impl fmt::Debug for Other { }
pub enum E { A, B }
pub mod sub {
    pub fn f() {}
    pub struct S;
    impl S { }
}
mod tests {
    pub fn hidden() {}
}
pub const fn konst() {}
pub const LIMIT: u8 = 1;
pub static mut G: u8 = 1;
pub type Alias = u8;
pub extern "C" fn callback() {}
fn private() {}
`, `A crate for x.
12 struct Parser
14 trait Visit
15 type Visit::Out
16 method Visit.visit
22 const Parser::MAX
23 method Parser.new
26 method Parser.run
36 enum E
37 module sub
38 func sub::f
39 struct sub::S
45 func konst
46 const LIMIT
47 var G
48 type Alias
49 func callback
`},
}, moreOutlines...)
