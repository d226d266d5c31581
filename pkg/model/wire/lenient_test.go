package wire

import "testing"

func TestUnmarshalTakesWhatServersSend(t *testing.T) {
	type call struct {
		Index *Int   `json:"index"`
		Name  String `json:"name"`
	}
	type reply struct {
		Text  String     `json:"text"`
		Count Int        `json:"count"`
		Calls List[call] `json:"calls"`
		Inner struct {
			Count Int `json:"count"`
		} `json:"inner"`
	}
	for body, want := range map[string]struct {
		text         String
		count, inner Int
		calls        int
	}{
		`{"text":"a","count":7,"calls":[{"index":0,"name":"n"}],"inner":{"count":3},"other":1}`: {"a", 7, 3, 1},
		`{"text":null,"count":null,"calls":null,"inner":null}`:                                  {},
		`{"text":{"a": 1},"count":"7","calls":[{},null]}`:                                       {`{"a": 1}`, 7, 0, 2},
		`{"text":7,"count":7.9,"calls":[{},1],"inner":"x"}`:                                     {"7", 7, 0, 0},
		`{"text":true,"count":1e30,"calls":"x","inner":[1]}`:                                    {"true", 1 << 62, 0, 0},
		`{"text":"a","count":true,"calls":{},"inner":{"count":[]}}`:                             {"a", 0, 0, 0},
		`null`: {},
	} {
		var got reply
		if err := Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if got.Text != want.text || got.Count != want.count || got.Inner.Count != want.inner || len(got.Calls) != want.calls {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
	for _, body := range []string{"", "[]", "7", `"x"`, `{"text":`, "{}x"} {
		var got reply
		if err := Unmarshal([]byte(body), &got); err == nil {
			t.Errorf("%q was accepted", body)
		}
	}
}
