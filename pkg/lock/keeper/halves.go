package keeper

// A batch that panicked is sent again in halves, and those in halves, until the one member that did
// it stands alone. Only that one is lost, and the others wait for a few calls, not for hundreds.

// halve splits a batch that panicked, or ends the only member it has.
func (k *Keeper) halve(b batch, p *PanicError) []batch {
	if n := len(b.members); n > 1 {
		return []batch{
			{members: b.members[:n/2], patience: b.patience},
			{members: b.members[n/2:], patience: b.patience},
		}
	}
	e := b.members[0].entry
	k.mu.Lock()
	var losses []loss
	if k.landed(e) {
		p.Key = e.id.Key
		losses = append(losses, k.lose(e, p))
	}
	k.mu.Unlock()
	k.tellPanic(e.id.Key)
	k.tellLosses(losses)
	return nil
}

func (k *Keeper) keepHalves(halves []batch) {
	if len(halves) == 0 {
		return
	}
	k.mu.Lock()
	k.halves = append(k.halves, halves...)
	k.mu.Unlock()
	k.renewals.kick()
}

// takeHalf takes a half with those members that are still to be renewed, as they are now.
func (k *Keeper) takeHalf() (batch, bool) {
	for len(k.halves) > 0 {
		b := k.halves[0]
		k.halves = k.halves[1:]
		fresh := batch{patience: b.patience}
		for _, m := range b.members {
			if k.landed(m.entry) {
				m.entry.renewing = true
				fresh.members = append(fresh.members, renewal{entry: m.entry, extension: m.entry.extension()})
			}
		}
		if len(fresh.members) > 0 {
			return fresh, true
		}
	}
	return batch{}, false
}
