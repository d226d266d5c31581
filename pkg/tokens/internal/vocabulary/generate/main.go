// Command generate writes the indexes of the vocabularies to a directory.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/harnessmesh/harnessmesh/pkg/tokens/internal/vocabulary"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: generate DIRECTORY")
	}
	for _, encoding := range []string{"o200k_base", "cl100k_base"} {
		lines, err := vocabulary.Lines(encoding)
		if err != nil {
			return err
		}
		index, err := vocabulary.Build(lines)
		if err != nil {
			return fmt.Errorf("%s: %w", encoding, err)
		}
		if err := os.WriteFile(filepath.Join(args[0], encoding+".index"), index, 0o644); err != nil {
			return err
		}
	}
	return nil
}
