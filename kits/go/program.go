package helenus

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
)

// carried is the path of the copy that Carry wrote.
var carried atomic.Pointer[string]

// Carry makes a program that a package embeds available to Start. The package calls it in its init function, with the bytes that
// `go:embed` gives. The copy stands in the user's cache directory under the sum of its bytes; a rename puts it there whole, so that
// processes that start at the same time never run half of it.
func Carry(program []byte) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	folder := filepath.Join(cache, "helenus", hex.EncodeToString(sum[:]))
	path := filepath.Join(folder, "helenus")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if there, err := os.Stat(path); err == nil && there.Size() == int64(len(program)) {
		carried.Store(&path)
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, "part-*")
	if err != nil {
		return err
	}
	_, err = file.Write(program)
	err = errors.Join(err, file.Chmod(0o700), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("helenus: the carried program: %w", err)
	}
	carried.Store(&path)
	return nil
}

// FindProgram returns the path of the server's program: the argument, else HELENUS_BIN, else the carried copy, else `helenus` in PATH.
// It downloads nothing.
func FindProgram(program string) (string, error) {
	copied := ""
	if path := carried.Load(); path != nil {
		copied = *path
	}
	for _, candidate := range []string{program, os.Getenv("HELENUS_BIN"), copied} {
		if candidate == "" {
			continue
		}
		path, err := exec.LookPath(candidate)
		if err != nil {
			return "", fmt.Errorf("helenus: %s is not a program", candidate)
		}
		return path, nil
	}
	path, err := exec.LookPath("helenus")
	if err != nil {
		return "", errors.New("helenus: there is no helenus in PATH: set HELENUS_BIN to the program; in a clone `cargo build --release` makes target/release/helenus")
	}
	return path, nil
}
