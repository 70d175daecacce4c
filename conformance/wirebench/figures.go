package main

import (
	"encoding/json"
	"os"
	"time"
)

// figures are one server's medians over the rounds, for programs that read them; times in nanoseconds, memory in bytes.
type figures struct {
	Name, Version    string
	Initialize       time.Duration
	EchoP50, EchoP99 time.Duration
	ReadP50, ReadP99 time.Duration
	Idle             int64
}

func writeFigures(path string, servers []*contestant) error {
	all := make([]figures, len(servers))
	for i, s := range servers {
		all[i] = figures{
			Name: s.name, Version: s.version, Initialize: median(s.initialize), EchoP50: median(s.echoP50), EchoP99: median(s.echoP99),
			ReadP50: median(s.readP50), ReadP99: median(s.readP99), Idle: median(s.idle),
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
