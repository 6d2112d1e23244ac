package weirtest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"weir"
)

var (
	units = map[string]int64{"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6, "d": 86400e6, "w": 7 * 86400e6}
	rate  = regexp.MustCompile(`^([1-9]\d{0,8})/(\d{0,8}(?:\.\d{1,6})?)(us|ms|s|m|h|d|w)$`)
	count = regexp.MustCompile(`^[1-9]\d{0,8}$`)
	path  = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
)

const never, later = -1, 1 << 62 // of a start: never; of concurrency: when a job ends

type rule struct {
	text, by, algorithm  string
	count, burst, period int64
}

func readRule(text string) (rule, error) {
	head, rest, _ := strings.Cut(text, ",")
	r := rule{text: text, algorithm: "gcra"}
	if parts := rate.FindStringSubmatch(head); parts != nil {
		r.count, _ = strconv.ParseInt(parts[1], 10, 64)
		span, given := new(big.Rat).SetString(parts[2])
		if !given {
			span = big.NewRat(1, 1)
		}
		span.Mul(span, new(big.Rat).SetInt64(units[parts[3]]))
		r.period = new(big.Int).Quo(span.Num(), span.Denom()).Int64()
	} else if number := strings.TrimPrefix(head, "concurrency="); number != head && count.MatchString(number) {
		r.algorithm = "concurrency"
		r.count, _ = strconv.ParseInt(number, 10, 64)
	}
	if r.count == 0 || r.algorithm != "concurrency" && r.period == 0 {
		return r, &weir.InvalidError{Why: "rule '" + text + "': write it as 100/1m or concurrency=5", Member: "rules"}
	}
	r.burst = r.count
	for rest != "" {
		var option string
		option, rest, _ = strings.Cut(rest, ",")
		name, value, _ := strings.Cut(option, "=")
		smooth := r.algorithm == "gcra" || r.algorithm == "token-bucket"
		switch {
		case name == "by" && path.MatchString(value):
			r.by = value
		case name == "burst" && count.MatchString(value) && smooth:
			r.burst, _ = strconv.ParseInt(value, 10, 64)
		case name == "algorithm" && r.algorithm != "concurrency" && strings.Contains(" gcra token-bucket fixed-window sliding-log ", " "+value+" "):
			r.algorithm = value
		default:
			return r, &weir.InvalidError{Why: "rule '" + text + "': the test mode does not know " + option, Member: "rules"}
		}
	}
	return r, nil
}

type start struct{ at, cost int64 }

// A gate is the state of a rule, of one key. Times are whole microseconds.
type gate struct {
	rule
	tat     *big.Rat // of gcra, when all is as if never used
	log     []start  // of a window, or of a period
	running int64
}

func (g *gate) smooth() bool { return g.algorithm == "gcra" || g.algorithm == "token-bucket" }

func (g *gate) window(at int64) int64 { return at - at%g.period }

func (g *gate) live(now int64) (live []start, used int64) {
	for _, one := range g.log {
		if g.algorithm == "fixed-window" && one.at >= g.window(now) || g.algorithm == "sliding-log" && one.at > now-g.period {
			live, used = append(live, one), used+one.cost
		}
	}
	return live, used
}

// slots is how long so many of them take.
func (g *gate) slots(n int64) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(g.period, g.count), new(big.Rat).SetInt64(n))
}

func ceiling(r *big.Rat) int64 {
	up := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return up.Div(up, r.Denom()).Int64()
}

func latest(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}

// start returns when such a start may be.
func (g *gate) start(now, cost int64) int64 {
	if g.algorithm == "concurrency" {
		if g.running < g.count {
			return now
		}
		return later
	}
	if cost > g.burst {
		return never
	}
	if g.smooth() {
		return latest(now, ceiling(new(big.Rat).Sub(g.tat, g.slots(g.burst-cost))))
	}
	live, used := g.live(now)
	excess := used + cost - g.count
	if excess <= 0 {
		return now
	}
	if g.algorithm == "fixed-window" {
		return g.window(now) + g.period
	}
	for _, one := range live {
		if excess -= one.cost; excess <= 0 {
			return one.at + g.period
		}
	}
	panic("a cost above the burst was answered before")
}

func (g *gate) take(now, cost int64) {
	switch {
	case g.algorithm == "concurrency":
		g.running++
	case g.smooth():
		if now > ceiling(g.tat) {
			g.tat = new(big.Rat).SetInt64(now)
		}
		g.tat = new(big.Rat).Add(g.tat, g.slots(cost))
	default:
		live, _ := g.live(now)
		g.log = append(live, start{now, cost})
	}
}

func (g *gate) end() {
	if g.algorithm == "concurrency" {
		g.running--
	}
}

func (g *gate) remaining(now int64) int64 {
	if g.algorithm == "concurrency" {
		return g.count - g.running
	}
	if !g.smooth() {
		_, used := g.live(now)
		return latest(0, g.count-used)
	}
	used := new(big.Rat).Sub(g.tat, new(big.Rat).SetInt64(now))
	if used.Sign() <= 0 {
		return g.burst
	}
	return latest(0, g.burst-ceiling(used.Quo(used, g.slots(1))))
}

// resets returns when all is as if never used.
func (g *gate) resets(now int64) int64 {
	if g.smooth() {
		return latest(now, ceiling(g.tat))
	}
	live, _ := g.live(now)
	switch {
	case len(live) == 0:
		return now
	case g.algorithm == "fixed-window":
		return g.window(now) + g.period
	}
	return live[len(live)-1].at + g.period
}

type place struct {
	rule int
	key  string
}

type limit struct {
	rules  []rule
	by     string
	pauses map[string]int64 // by key, where it has some
	gates  map[place]*gate
}

func readLimit(texts []string) (*limit, error) {
	l := &limit{gates: map[place]*gate{}, pauses: map[string]int64{}}
	for _, text := range strings.Fields(strings.Join(texts, " ")) {
		r, err := readRule(text)
		if err != nil {
			return nil, err
		}
		if r.by != "" && l.by != "" && r.by != l.by {
			return nil, &weir.InvalidError{Why: "all keyed rules of a limit use one path", Member: "rules"}
		}
		if r.by != "" {
			l.by = r.by
		}
		l.rules = append(l.rules, r)
	}
	if len(l.rules) < 1 || len(l.rules) > 8 {
		return nil, &weir.InvalidError{Why: "a limit has one to eight rules", Member: "rules"}
	}
	return l, nil
}

func (l *limit) pause(key string, until int64) {
	if l.by == "" {
		key = ""
	}
	l.pauses[key] = until
}

func (l *limit) paused(key string) int64 {
	if l.by == "" {
		key = ""
	}
	return l.pauses[key]
}

func (l *limit) of(key string) []*gate {
	var gates []*gate
	for i, r := range l.rules {
		at := place{rule: i}
		if r.by != "" {
			at.key = key
		}
		if l.gates[at] == nil {
			l.gates[at] = &gate{rule: r, tat: new(big.Rat)}
		}
		gates = append(gates, l.gates[at])
	}
	return gates
}

// keyOf returns the key of a job: the value at the path of the rules.
func (l *limit) keyOf(document []byte) string {
	var value any
	if l.by == "" || json.Unmarshal(document, &value) != nil {
		return "-"
	}
	for _, name := range strings.Split(l.by, ".") {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	if value == nil {
		return "-"
	}
	return fmt.Sprint(value)
}
