package weirtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir"
)

// The checks of protocol 1: what Weir refuses is refused with the same members.
const (
	jobBytes, bulkBytes, bulkLines, deepest = 1 << 20, 2 << 20, 1000, 511
	tenYears, year2100                      = 315532800, 4102444800
)

type member struct {
	name  string
	value json.RawMessage
}

type document []member

func (d document) get(name string) (json.RawMessage, bool) {
	for _, one := range d {
		if one.name == name {
			return one.value, true
		}
	}
	return nil, false
}

func (d document) has(name string) bool {
	_, has := d.get(name)
	return has
}

// text returns a member that was checked to be a string, or else the other text.
func (d document) text(name, other string) string {
	if value, has := d.get(name); has {
		_ = json.Unmarshal(value, &other)
	}
	return other
}

// number returns a member that was checked to be a number, or else the other one.
func (d document) number(name string, other float64) float64 {
	if value, has := d.get(name); has {
		_ = json.Unmarshal(value, &other)
	}
	return other
}

// cost returns a member that was checked to be one; else what nobody says.
func (d document) cost(name string) costs {
	value, has := d.get(name)
	if !has {
		return nil
	}
	var said costs
	if json.Unmarshal(value, &said) != nil {
		said = costs{"plain": int64(d.number(name, 1))}
	}
	return said
}

// word is the cost of a question, as places of a line have it.
func (d document) word() string {
	if !d.has("cost") {
		return "1"
	}
	return d.cost("cost").word()
}

func invalid(name, why string, more ...any) error {
	return &weir.InvalidError{Why: fmt.Sprintf(why, more...), Member: name}
}

// faultOf says what Weir does not take in a text that may be JSON to others. "": nothing.
func faultOf(text []byte, depth int) string {
	if !utf8.Valid(text) {
		return "it is not UTF-8"
	}
	if !json.Valid(text) {
		return "it has a wrong character, or ends too early"
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			end, fault := stringEnd(text, i+1)
			if fault != "" {
				return fault
			}
			i = end
		case c == '[' || c == '{':
			if depth--; depth < 0 {
				return "nested too deep"
			}
		case c == ']' || c == '}':
			depth++
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(text) && strings.IndexByte("0123456789+-.eE", text[end]) >= 0 {
				end++
			}
			if fault := numberFault(string(text[i:end])); fault != "" {
				return fault
			}
			i = end - 1
		}
	}
	return ""
}

// stringEnd returns where the string ends whose text begins at i.
func stringEnd(text []byte, i int) (int, string) {
	unit := func(at int) int64 { // of \uXXXX there; -1: none is there
		if at+6 > len(text) || text[at] != '\\' || text[at+1] != 'u' {
			return -1
		}
		value, err := strconv.ParseInt(string(text[at+2:at+6]), 16, 32)
		if err != nil {
			return -1
		}
		return value
	}
	for ; text[i] != '"'; i++ {
		if text[i] != '\\' {
			continue
		}
		switch one := unit(i); {
		case one == 0:
			return i, `\u0000 is not supported`
		case one >= 0xd800 && one < 0xdc00:
			if two := unit(i + 6); two < 0xdc00 || two > 0xdfff {
				return i, "half a surrogate pair"
			}
			i += 11
		case one >= 0xdc00 && one < 0xe000:
			return i, "half a surrogate pair"
		default:
			i++
		}
	}
	return i, ""
}

func numberFault(digits string) string {
	if strings.ContainsAny(digits, ".eE") {
		if _, err := strconv.ParseFloat(digits, 64); err != nil {
			return "a number too large for a double"
		}
	} else if _, err := strconv.ParseInt(digits, 10, 64); err != nil {
		return "an integer that does not fit 64 bits"
	}
	return ""
}

func readObject(text string) (document, error) {
	if len(text) > jobBytes {
		return nil, invalid("", "the document has more than %d bytes", jobBytes)
	}
	if fault := faultOf([]byte(text), deepest+1); fault != "" {
		return nil, invalid("", "not JSON: %s", fault)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, invalid("", "not a JSON object")
	}
	var d document
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil {
			return nil, invalid("", "not JSON: %v", err)
		}
		if d.has(name.(string)) {
			return nil, invalid(name.(string), "not JSON: a member comes twice")
		}
		d = append(d, member{name.(string), value})
	}
	return d, nil
}

// A kind is a check of a value, and what it must be.
type kind struct {
	fits   func(value []byte) bool
	mustBe string
}

func text(mustBe string, fits func(string) bool) kind {
	return kind{func(value []byte) bool {
		var text string
		return value[0] == '"' && json.Unmarshal(value, &text) == nil && fits(text)
	}, mustBe}
}

func whole(low, high int64) kind {
	return kind{func(value []byte) bool {
		number, err := strconv.ParseInt(string(value), 10, 64)
		return err == nil && number >= low && number <= high
	}, fmt.Sprintf("a whole number from %d to %d", low, high)}
}

// aCostFrom is a number, or an object of numbers by name; least: of plain slots.
func aCostFrom(least int64) kind {
	plain, named := whole(least, 1e9), whole(0, 1e9)
	fits := func(value []byte) bool {
		d, err := readObject(string(value))
		others := 0
		for _, one := range d {
			if one.name == "plain" && plain.fits(one.value) {
				continue
			}
			if others++; one.name == "plain" || one.name == "jobs" || !costName.MatchString(one.name) || !named.fits(one.value) {
				return false
			}
		}
		return err == nil && len(d) > 0 && others <= 8
	}
	return kind{func(value []byte) bool {
		if value[0] == '{' {
			return fits(value)
		}
		return plain.fits(value)
	}, plain.mustBe + `, or by up to 8 names, {"tokens": 900}`}
}

func number(mustBe string, low, high float64) kind {
	return kind{func(value []byte) bool {
		number, err := strconv.ParseFloat(string(value), 64)
		return err == nil && number >= low && number <= high
	}, mustBe}
}

func matching(mustBe, pattern string) kind {
	return text(mustBe, regexp.MustCompile("^(?:"+pattern+")$").MatchString)
}

func isTrace(text string) bool {
	parts := strings.Split(text, "-")
	return traceparent.MatchString(text) && parts[0] != "ff" && strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}

func with(members map[string]kind, more map[string]kind) map[string]kind {
	all := map[string]kind{}
	for _, one := range []map[string]kind{members, more} {
		for name, kind := range one {
			all[name] = kind
		}
	}
	return all
}

var (
	costName    = regexp.MustCompile("^[a-z][a-z0-9_]{0,31}$")
	traceparent = regexp.MustCompile("^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")

	aName  = matching("a string of 1 to 128 of A-Z a-z 0-9 _ . -", "[A-Za-z0-9_.-]{1,128}")
	anyOne = kind{func([]byte) bool { return true }, "any value"}
	isTrue = kind{func(value []byte) bool { return string(value) == "true" }, "true"}
	aCost  = aCostFrom(1)
	aSpan  = number("", 0.001, tenYears)

	jobMembers = map[string]kind{
		"type": aName, "id": aName, "args": anyOne, "key": aName, "cost": aCost, "max_attempts": whole(1, 1e6), "meta": anyOne,
		"timeout":     number("a number of seconds above 0, at most ten years", 5e-324, tenYears),
		"traceparent": text("VERSION-TRACE-SPAN-FLAGS in lower-case hex", isTrace),
	}
	lineMembers    = with(jobMembers, map[string]kind{"queue": aName})
	enqueueMembers = with(lineMembers, map[string]kind{
		"in": number("a number of seconds, before the year 2100", 0, year2100-1e-6),
		"at": number("seconds since 1970, before the year 2100", 0, year2100-1e-6), "unique": aName,
		"unique_until": {func(value []byte) bool {
			return string(value) == `"end"` || string(value) == `"start"` || aSpan.fits(value)
		},
			`"end", "start", or seconds from 0.001 to ten years`},
		"batch": aName, "remember": whole(1, 2592000),
	})
	headMembers = map[string]kind{
		"batch": aName, "stream": aName, "offset": whole(0, 1<<53-1), "type": aName, "queue": aName, "sum": matching("16 hexadecimal digits", "[0-9a-f]{16}"),
	}
	batchMembers = map[string]kind{"batch": aName, "seal": isTrue, "then": aName, "queue": aName}
	rateMembers  = map[string]kind{
		"limit": aName, "cost": aCost, "key": text("a string of 1 to 1024 bytes", func(s string) bool { return len(s) >= 1 && len(s) <= 1024 }),
	}
	takeMembers = with(rateMembers, map[string]kind{
		"wait": number("a number of seconds from 0 to 86400", 0, 86400), "leave": isTrue, "place": matching("as it was answered", `[0-9]+\.[a-z0-9_:,]+\.[A-Za-z0-9]+`),
	})
	holdMembers = with(takeMembers, map[string]kind{
		"ttl": number("a number of seconds from 0.1 to 86400", 0.1, 86400), "tag": matching("a string of 1 to 40 letters and digits", `[A-Za-z0-9]{1,40}`),
		"who": text("a line of at most 200 bytes", func(s string) bool {
			return len(s) <= 200 && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
		}),
	})
	renewMembers = map[string]kind{"token": matching("as it was answered", `[A-Za-z0-9_.-]{1,128}~[A-Za-z0-9]+`)}
	endMembers   = with(renewMembers, map[string]kind{"spent": aCostFrom(0)})
	idMembers    = map[string]kind{"id": aName, "cursor": {func([]byte) bool { return false }, "as it was answered"}} // here there is none
)

// check returns what is wrong with the document.
func (d document) check(members map[string]kind, required, what string) error {
	for _, one := range d {
		kind, known := members[one.name]
		if !known && what == "job" {
			return invalid(one.name, `wrong job: "%.60s" is no member of it; what the handler needs goes into "args" or "meta"`, one.name)
		} else if !known {
			return invalid(one.name, `wrong %s: "%.60s" is no member of it`, what, one.name)
		}
		if !kind.fits(one.value) {
			return invalid(one.name, `wrong %s: "%s" must be %s, not %.60s`, what, one.name, kind.mustBe, one.value)
		}
	}
	if required != "" && !d.has(required) {
		return invalid(required, `wrong %s: "%s" is missing`, what, required)
	}
	return nil
}

// body returns the job that is made of the document, as its handler gets it.
func (d document) body(id string) json.RawMessage {
	text := bytes.NewBufferString(`{"id":` + strconv.Quote(id))
	add := func(name string, value []byte) {
		text.WriteString(`,"` + name + `":`)
		text.Write(value)
	}
	for _, name := range []string{"type", "key", "cost"} {
		value, has := d.get(name)
		if said := d.cost("cost"); name == "cost" && len(said) == 1 && said["plain"] > 0 { // as the handlers of a worker get it
			value = []byte(said.word())
		}
		if has {
			add(name, value)
		}
	}
	for _, one := range d {
		_, ofJob := jobMembers[one.name]
		if ofJob && one.name != "id" && one.name != "type" && one.name != "key" && one.name != "cost" {
			add(one.name, one.value)
		}
	}
	text.WriteByte('}')
	return text.Bytes()
}
