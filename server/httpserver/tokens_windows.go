package httpserver

import "io/fs"

// checkPrivate accepts every file: modes carry no access rights on Windows, the directory's ACL protects it.
func checkPrivate(fs.FileInfo) error { return nil }
