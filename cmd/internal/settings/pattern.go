package settings

import (
	"errors"
	"strings"
)

// Pattern matches whole raw keys: * stands for any text, also none and also with slashes or colons,
// ? for one byte, and a backslash takes the character after it as it is. There are no classes.
type Pattern string

// Validate reports why the pattern cannot be used.
func (p Pattern) Validate() error {
	s := string(p)
	if s == "" {
		return errors.New("is empty: write the keys that are allowed, such as billing:*")
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[', ']':
			return errors.New(`classes are not supported: write \[ and \] where a key has brackets, or one entry for each key`)
		case '\\':
			if i++; i == len(s) {
				return errors.New(`ends in a backslash: write \\ where a key has one`)
			}
		}
	}
	return nil
}

// Match reports whether the pattern matches all of key.
func (p Pattern) Match(key string) bool {
	// The usual walk: after a mismatch the newest * takes one more byte.
	pattern, star, from := string(p), -1, 0
	i, k := 0, 0
	for k < len(key) {
		switch next, width := element(pattern[i:]); {
		case next == anything:
			star, from = i, k
			i += width
			continue
		case width > 0 && (next == anyByte || next == int(key[k])):
			i += width
			k++
			continue
		case star < 0:
			return false
		}
		from++
		i, k = star+1, from
	}
	return strings.Trim(pattern[i:], "*") == ""
}

const (
	anything = -1
	anyByte  = -2
)

// element returns what a pattern begins with, a byte or one of the above, and how long it is.
func element(pattern string) (what, width int) {
	switch {
	case pattern == "":
		return 0, 0
	case pattern[0] == '*':
		return anything, 1
	case pattern[0] == '?':
		return anyByte, 1
	case pattern[0] == '\\' && len(pattern) > 1:
		return int(pattern[1]), 2
	}
	return int(pattern[0]), 1
}
