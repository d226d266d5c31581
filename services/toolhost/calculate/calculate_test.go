package calculate

import (
	"strings"
	"testing"
)

func TestEvaluateIsExact(t *testing.T) {
	for expression, want := range map[string]string{
		"0.1 + 0.2": "0.3", "1/3": "1/3 (about 0.33333333333333333333)", "1/3*3": "1", "2^100": "1267650600228229401496703205376",
		"-2^2": "-4", "2^-2": "0.25", "2**3^2": "512", "(1+2)*3": "9", "1-2-3": "-4", "100/10/2": "5", "7 % 3": "1", "-7 % 3": "2", "5.5%2": "1.5",
		"1e6": "1000000", "1e-3+1": "1.001", "1_000*2": "2000", "0xff+0b11": "258", "0xe+1": "15", ".5*2": "1",
		"sqrt(16/9)": "4/3 (about 1.33333333333333333333)", "sqrt(2)": "1.4142135623730950488016887242096980785696",
		"round(2.5)": "3", "round(-2.5)": "-3", "round(1/3, 2)": "0.33", "round(1234, -2)": "1200", "floor(-1.5)": "-2", "ceil(-1.5)": "-1", "max(1, 3, 2)": "3",
		"min(1,-3,2)": "-3", "abs(-1/4)": "0.25", "--1": "1", "1^999999999999": "1", "(-1)^1000001": "-1", "(-1)^4": "1", "0^0": "1", "0^5": "0",
		"9999999999999999999999 * 9999999999999999999999": "99999999999999999999980000000000000000000001",
	} {
		if got, err := Evaluate(expression); err != nil || got != want {
			t.Errorf("%s = %s, %v, want %s", expression, got, err, want)
		}
	}
}

func TestEvaluateIsBounded(t *testing.T) {
	for expression, want := range map[string]string{
		strings.Repeat("(", 1_000_000) + "1" + strings.Repeat(")", 1_000_000): "limit of 4096",
		strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000):           "deeper", strings.Repeat("-", 4000) + "1": "deeper", strings.Repeat("2^", 1000) + "2": "deeper",
		"9^9^9": "bits", "9^5000*9^5000": "bits", "1e999999999": "exponent", "2^99999": "bits", "10^4000^2": "bits", "1/0": "at 4: division by zero", "0^-1": "division by zero", "1%0": "division by zero",
		"": "ends", "1+": "ends", "1 2": "at 3: unexpected", "(1": "expected )", "f(1)": "unknown function", "x": "neither", "sqrt(-1)": "negative", "2^0.5": "sqrt",
		"max()": "expected a number", "abs(1,2)": "2 arguments", "1e5000": "exponent", "0x": "no number", "1.2.3": "no number", "round(1, 2000)": "digits",
	} {
		if got, err := Evaluate(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s = %.40s, %v, want %s", expression, got, err, want)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"1+2*3", "2^-3^2", "sqrt(2)/3", "round(1e5,-3)", "((", "0xe+1", "1e-5", "max(1,2)%-3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		got, err := Evaluate(expression)
		if again, errAgain := Evaluate(expression); again != got || (err == nil) != (errAgain == nil) {
			t.Errorf("%q: %s and %s", expression, got, again)
		}
		if len(got) > 4*maxBits {
			t.Errorf("%q: %d bytes", expression, len(got))
		}
	})
}
