//go:build unix && !linux

package main

import "syscall"

// adoptOrphans does nothing here: init adopts them.
func adoptOrphans() error { return nil }

// attributes of a process: a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// children are not known here; a process that leaves its group escapes.
func children() []int { return nil }
