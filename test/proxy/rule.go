package proxy

import (
	"slices"
	"strings"
	"time"
)

// Mode is a kind of fault. See the package's table.
type Mode string

// The modes.
const (
	Pass         Mode = "Pass"
	Cut          Mode = "Cut"
	Refuse       Mode = "Refuse"
	BlackHole    Mode = "BlackHole"
	Delay        Mode = "Delay"
	SwallowReply Mode = "SwallowReply"
	HoldReply    Mode = "HoldReply"
	StaleReply   Mode = "StaleReply"
)

// Rule is a fault and what it befalls.
type Rule struct {
	Mode Mode
	// Commands are names such as EVALSHA; none means the whole link.
	Commands []string
	// Contains restricts the commands to those with an argument that contains it.
	Contains string
	// Delay is how much later replies come.
	Delay time.Duration
	// Times is how many commands it befalls; zero means all until Heal or Set. Only with Commands.
	Times int
}

// whole reports a rule about the link, not about commands.
func (r *Rule) whole() bool { return len(r.Commands) == 0 && r.Contains == "" }

func (r *Rule) fits(command []string) bool {
	if r.whole() {
		return true
	}
	if len(r.Commands) > 0 && !slices.ContainsFunc(r.Commands, func(name string) bool { return strings.EqualFold(name, command[0]) }) {
		return false
	}
	return r.Contains == "" || slices.ContainsFunc(command[1:], func(arg string) bool { return strings.Contains(arg, r.Contains) })
}

// match uses up the first rule that fits the command.
func (p *Proxy) match(command []string) Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[strings.ToUpper(command[0])]++
	for i, r := range p.rules {
		if !r.fits(command) {
			continue
		}
		if r.Times == 1 {
			p.rules = slices.Delete(p.rules, i, i+1)
		} else if r.Times > 1 {
			r.Times--
		}
		return *r
	}
	return Rule{Mode: Pass}
}

// is reports whether the whole link is in one of the modes.
func (p *Proxy) is(modes ...Mode) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.whole() && slices.Contains(modes, r.Mode) })
}
