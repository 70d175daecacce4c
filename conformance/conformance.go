// Package conformance has the tests of the whole product: the rules of the layers, transcripts of the wire, and other
// people's programs run against the binary.
//
// It has tests and fixtures only, and no package of the product imports it.
package conformance
