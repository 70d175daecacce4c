package tools

import "io"

// Discard is an [Output], and its [Page], that drops all. Embed it in one that takes a part.
type Discard struct{}

// Write implements [Output], as the other methods do.
func (Discard) Write(b []byte) (int, error) { return len(b), nil }
func (Discard) Streams(string) func(bool) io.Writer {
	return func(bool) io.Writer { return io.Discard }
}
func (Discard) Answered(string)                                {}
func (d Discard) Page() Page                                   { return d }
func (Discard) Keep(...string)                                 {}
func (Discard) OnStored(func(id string))                       {}
func (Discard) Store(Stored) (string, error)                   { return "", nil }
func (Discard) Attach(any)                                     {}
func (Discard) Source(string)                                  {}
func (Discard) Part(string, string) io.Writer                  { return io.Discard }
func (Discard) Count(string, float64)                          {}
func (Discard) Note(string)                                    {}
func (Discard) Findings([]string)                              {}
func (Discard) Progress(int64, int64, string)                  {}
func (Discard) Row([]byte, Call) error                         { return nil }
func (Discard) TruncatedRow([]byte, []byte, int64, Call) error { return nil }
func (Discard) Text([]byte) error                              { return nil }
func (Discard) SetRowRange(int64, int64)                       {}
func (Discard) SetTextRange(string, int64, int64, int64)       {}
func (Discard) Next(Call)                                      {}
func (Discard) Cut(int64)                                      {}
func (Discard) Quoted()                                        {}
func (Discard) Since(string, bool)                             {}
func (Discard) ResolveWith(func(string) (string, bool))        {}
func (Discard) Pass(Result)                                    {}
