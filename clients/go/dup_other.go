//go:build !linux

package weir

import "syscall"

func duplicate(from, to int) error { return syscall.Dup2(from, to) }
