package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

var errProtocol = errors.New("not the Redis protocol")

// readFrame reads one value of RESP2 or RESP3, nested ones included, and returns its bytes.
func readFrame(in *bufio.Reader) ([]byte, error) {
	var out bytes.Buffer
	if err := copyFrame(&out, in); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func copyFrame(out *bytes.Buffer, in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	out.Write(line)
	if len(line) < 3 {
		return errProtocol
	}
	kind, rest := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return fmt.Errorf("%w: %q", errProtocol, line)
	}
	switch kind {
	case '$', '=', '!':
		if n < 0 {
			return nil
		}
		_, err := io.CopyN(out, in, int64(n)+2)
		return err
	case '*', '~', '>':
	case '%':
		n *= 2
	case '|':
		n = 2*n + 1 // attributes stand before the value they belong to
	default:
		return fmt.Errorf("%w: %q", errProtocol, line)
	}
	for range n {
		if err := copyFrame(out, in); err != nil {
			return err
		}
	}
	return nil
}

// readCommand reads one request: its bytes, and its words.
func readCommand(in *bufio.Reader) (raw []byte, words []string, err error) {
	raw, err = readFrame(in)
	if err != nil {
		return nil, nil, err
	}
	words, err = parseWords(raw)
	return raw, words, err
}

func parseWords(raw []byte) ([]string, error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	line, err := in.ReadString('\n')
	if err != nil || line[0] != '*' {
		return nil, errProtocol
	}
	var words []string
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) && len(words) > 0 {
			return words, nil
		}
		if err != nil || len(line) < 3 || line[0] != '$' {
			return nil, errProtocol
		}
		n, err := strconv.Atoi(line[1 : len(line)-2])
		if err != nil || n < 0 {
			return nil, errProtocol
		}
		word := make([]byte, n+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:n]))
	}
}
