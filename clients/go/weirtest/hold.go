package weirtest

import (
	"strings"

	"weir"
)

type hold struct {
	since, until, ttl int64
	cost              costs
	gates             []*gate
	kept              bool // by a client, which renews it
}

// KeepHold says that a client renews a hold, as long as it has it.
func (f *Fake) KeepHold(token string, keep bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if held := f.holds[token]; held != nil {
		held.kept = keep
	}
}

func (f *Fake) hold(d document) (map[string]any, error) {
	if err := d.check(holdMembers, "limit", "document"); err != nil {
		return nil, err
	}
	f.endLate()
	tag := d.text("tag", "")
	if d.has("place") {
		tag = strings.Split(d.text("place", ""), ".")[2]
	} else if tag == "" {
		tag = strings.ReplaceAll(f.makeID(), "-", "")
	}
	token := d.text("limit", "") + "~" + tag
	if held := f.holds[token]; held != nil && !d.has("leave") {
		held.until = f.now + held.ttl
		return map[string]any{"allowed": true, "limit": 0, "remaining": 0, "reset_after": 0, "token": token}, nil
	}
	answer, err := f.askInLine(d, tag)
	if err == nil && answer["allowed"] == true {
		ttl := micros(d.number("ttl", 30))
		gates := f.limits[d.text("limit", "")].of(d.text("key", ""))
		f.holds[token] = &hold{since: f.now, until: f.now + ttl, ttl: ttl, cost: d.cost("cost"), gates: gates}
		answer["token"] = token
	}
	return answer, err
}

// held finds the hold of a document that has been checked.
func (f *Fake) held(d document, members map[string]kind) (string, *hold, error) {
	if err := d.check(members, "token", "document"); err != nil {
		return "", nil, err
	}
	f.endLate()
	token := d.text("token", "")
	if held := f.holds[token]; held != nil {
		return token, held, nil
	}
	return token, nil, &weir.MissingError{Why: "it is not held any more; it has ended, or was not renewed in time", Member: "token"}
}

func (f *Fake) renew(d document) (map[string]any, error) {
	_, held, err := f.held(d, renewMembers)
	if err != nil {
		return nil, err
	}
	held.until = f.now + held.ttl
	return map[string]any{"held": true}, nil
}

func (f *Fake) endHold(d document) (map[string]any, error) {
	token, held, err := f.held(d, endMembers)
	if err != nil {
		return nil, err
	}
	f.giveBack(token)
	for _, g := range held.gates {
		g.settle(held.since, held.cost, d.cost("spent"))
	}
	return map[string]any{"ended": true}, nil
}

func (f *Fake) giveBack(token string) {
	for _, g := range f.holds[token].gates {
		g.end()
	}
	delete(f.holds, token)
}

func (f *Fake) endLate() {
	for token, held := range f.holds {
		if held.until <= f.now && !held.kept {
			f.giveBack(token)
		}
	}
}
