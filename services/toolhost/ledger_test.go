package toolhost

import "testing"

func TestPlace(t *testing.T) {
	const random = "0123456789abcdef"
	here := PlaceOf("box", "/data/tools")
	if here != "5ed62318f536" {
		t.Errorf("the place of ledgers that exist has changed: %s", here)
	}
	for _, other := range []string{PlaceOf("box2", "/data/tools"), PlaceOf("box", "/data/tool"), PlaceOf("box/", "data/tools")} {
		if other == here {
			t.Error("two places are one")
		}
	}
	for id, want := range map[string]string{
		LedgerID(here, random):             here,
		"":                                 "",
		"-":                                "",
		here:                               "",
		here + "-":                         "",
		here + "-" + random + "0":          "",
		here + "-" + random[1:]:            "",
		here + "-" + random[1:] + "g":      "",
		here + "-" + random[1:] + "A":      "",
		here[1:] + "-" + random:            "",
		"x" + here[1:] + "-" + random:      "",
		here + "-" + random + "-" + random: "",
		"0123456789abcdef0123456789abcdef": "", // as earlier versions have it
	} {
		if got := Place(id); got != want {
			t.Errorf("Place(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestReplaces(t *testing.T) {
	here, there := PlaceOf("box", "/a"), PlaceOf("box", "/b")
	one, two := LedgerID(here, "0000000000000001"), LedgerID(here, "0000000000000002")
	for _, c := range []struct {
		newer, older string
		want         bool
	}{
		{two, one, true},
		{one, two, true},
		{one, one, false},
		{LedgerID(there, "0000000000000001"), one, false},
		{one, "", false},
		{"", one, false},
		{"", "", false},
		{"a", "b", false},
		{"0123456789abcdef0123456789abcdef", one, false},
		{one, "0123456789abcdef0123456789abcdef", false},
	} {
		if got := Replaces(c.newer, c.older); got != c.want {
			t.Errorf("Replaces(%q, %q) = %v", c.newer, c.older, got)
		}
	}
}
