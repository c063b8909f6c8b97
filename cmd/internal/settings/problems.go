package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with the file.
type Problem struct {
	// Line counts from 1; 0 where the problem is not in one line.
	Line int
	// Field is the path of the field, such as backends.default.addresses[0]; empty for the file.
	Field   string
	Message string
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d: ", p.Line)
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	return b.String() + p.Message
}

// Problems are all that is wrong with the file, in the order of its lines.
type Problems struct {
	File string
	List []Problem
}

// Error is one line for each problem: FILE:LINE: field: message.
func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List))
	for _, one := range p.List {
		separator := ":"
		if one.Line == 0 {
			separator = ": "
		}
		lines = append(lines, p.File+separator+one.String())
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(line int, field, format string, args ...any) {
	p.List = append(p.List, Problem{Line: line, Field: field, Message: fmt.Sprintf(format, args...)})
}

// orNil sorts the problems and returns them, nil if there are none.
func (p *Problems) orNil() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.List, func(a, b Problem) int { return a.Line - b.Line })
	return p
}
