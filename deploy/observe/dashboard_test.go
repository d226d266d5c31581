package observe

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

type dashboard struct {
	Templating struct {
		List []struct{ Name, Type string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               source
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []struct {
		Expr, LegendFormat, RefID string
		Datasource                source
	}
}

type source struct{ Type, UID string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	data, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// filled is a query with Grafana's variables as they are for "All" and a scrape
// every 15 s.
func filled(expr string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$job", ".*").Replace(expr)
}

func TestEachPanelSaysWhatItShowsAndWhereFrom(t *testing.T) {
	d := readDashboard(t)
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	if !slices.Equal(variables, []string{"datasource", "job"}) {
		t.Errorf("variables: %v", variables)
	}
	seen := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if seen[p.ID] {
			t.Errorf("%s: id %d is another panel's", p.Title, p.ID)
		}
		seen[p.ID] = true
		for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("%s: has no description, no query or a fixed data source", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || target.LegendFormat == "" || target.RefID == "" {
				t.Errorf("%s: %s: has no legend, no id or a fixed data source", p.Title, target.Expr)
			}
			if !strings.Contains(target.Expr, `job=~"$job"`) {
				t.Errorf("%s: %s: is not of the job that was chosen", p.Title, target.Expr)
			}
		}
	}
}
