package mcptool

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// tasks are sentences as a model writes them, each with the tool that is meant.
var tasks = map[string]string{
	"create an issue in the GitHub repository":                                      "mcp__github__create_issue",
	"merge the pull request on GitHub":                                              "mcp__github__merge_pull_request",
	"open a pull request on GitHub":                                                 "mcp__github__create_pull_request",
	"list the commits of a GitHub repository":                                       "mcp__github__list_commits",
	"fork the GitHub repository":                                                    "mcp__github__fork_repository",
	"search the code on GitHub":                                                     "mcp__github__search_code",
	"post a message to a Slack channel":                                             "mcp__slack__slack_post_message",
	"add a reaction to a message in Slack":                                          "mcp__slack__slack_add_reaction",
	"list the channels of the Slack workspace":                                      "mcp__slack__slack_list_channels",
	"reply in a Slack thread":                                                       "mcp__slack__slack_reply_to_thread",
	"get directions from one place to another with maps":                            "mcp__google-maps__maps_directions",
	"find the address of a coordinate, reverse geocode":                             "mcp__google-maps__maps_reverse_geocode",
	"take a screenshot of the page in the browser with playwright":                  "mcp__playwright__browser_take_screenshot",
	"navigate the browser to a URL with playwright":                                 "mcp__playwright__browser_navigate",
	"fill in a form in the browser":                                                 "mcp__playwright__browser_fill_form",
	"upload a file in the browser":                                                  "mcp__playwright__browser_file_upload",
	"take a heap snapshot of the page":                                              "mcp__chrome-devtools__take_heapsnapshot",
	"stop the performance trace in chrome":                                          "mcp__chrome-devtools__performance_stop_trace",
	"scale a deployment in Kubernetes with kubectl":                                 "mcp__kubernetes__kubectl_scale",
	"execute a command in a pod of the cluster":                                     "mcp__kubernetes__exec_in_pod",
	"install a helm chart":                                                          "mcp__kubernetes__install_helm_chart",
	"show the logs of a pod with kubectl":                                           "mcp__kubernetes__kubectl_logs",
	"create an index on a mongodb collection":                                       "mcp__mongodb__create-index",
	"rename a collection in mongodb":                                                "mcp__mongodb__rename-collection",
	"list the records of an airtable table":                                         "mcp__airtable__list_records",
	"create a record in airtable":                                                   "mcp__airtable__create_record",
	"retry a pipeline in GitLab":                                                    "mcp__gitlab__retry_pipeline",
	"cancel a job of a pipeline":                                                    "mcp__gitlab__cancel_pipeline_job",
	"create a milestone for a group in GitLab":                                      "mcp__gitlab__create_group_milestone",
	"create a page in the wiki of a project in GitLab":                              "mcp__gitlab__create_wiki_page",
	"delete a label of a project":                                                   "mcp__gitlab__delete_label",
	"approve the deployment that waits in GitLab":                                   "mcp__gitlab__approve_deployment",
	"search for news on the web with brave":                                         "mcp__brave-search__brave_news_search",
	"crawl a website with tavily":                                                   "mcp__tavily__tavily_crawl",
	"scrape a web page with firecrawl":                                              "mcp__firecrawl__firecrawl_scrape",
	"search papers for the research with firecrawl":                                 "mcp__firecrawl__firecrawl_research_search_papers",
	"boot the simulator of the iPhone":                                              "mcp__xcodebuildmcp__boot_sim",
	"record a video of the simulator":                                               "mcp__xcodebuildmcp__record_sim_video",
	"lint these files with eslint":                                                  "mcp__eslint__lint-files",
	"create a property in the CRM hubspot":                                          "mcp__hubspot__hubspot-create-property",
	"move a page to another parent in notion":                                       "mcp__notion__API-move-page",
	"read a file as text from the file system, for example of the workspace":        "mcp__filesystem__read_text_file",
	"list the allowed directories of the file system":                               "mcp__filesystem__list_allowed_directories",
	"add observations about an entity to the memory, so that they can be used then": "mcp__memory__add_observations",
}

// realTools are the tools of the real servers, in the order of the file, without descriptions.
func realTools(t *testing.T) *Index {
	t.Helper()
	data, err := os.ReadFile("../dialect/testdata/schemas.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	short := regexp.MustCompile(`^@|/mcp$|server-|mcp-|-mcp|-server|modelcontextprotocol/|notionhq/|zereight/|brave/|hubspot/mcp`)
	tools := &harnessv1.McpTools{}
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		var r struct {
			Server, Name string
			Schema       json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		server := strings.Trim(short.ReplaceAllString(r.Server, ""), "-/@")
		if r.Server == "@hubspot/mcp-server" {
			server = "hubspot"
		}
		name := "mcp__" + server + "__" + r.Name
		if seen[name] {
			continue
		}
		seen[name] = true
		tools.Tools = append(tools.Tools, &harnessv1.McpTool{
			Server: server, Spec: &harnessv1.ToolSpec{Name: name, ParametersSchema: string(r.Schema)}, Definition: &harnessv1.McpDefinition{Tool: r.Name},
		})
	}
	return NewIndex(tools)
}

// TestTheToolThatIsMeantIsFound: among 500 real tools, without their descriptions,
// a sentence finds the tool that it means.
func TestTheToolThatIsMeantIsFound(t *testing.T) {
	t.Parallel()
	x := realTools(t)
	listed := regexp.MustCompile(`(?m)^(mcp__[\w-]+)(\n|:)`)
	within := map[int]int{}
	for task, want := range tasks {
		if x.Lookup(want) == nil {
			t.Errorf("there is no tool %s", want)
		}
		var names []string
		for _, m := range listed.FindAllStringSubmatch(x.Find(task, nil, func(*harnessv1.McpTool) bool { return true }), -1) {
			names = append(names, m[1])
		}
		place := slices.Index(names, want)
		for _, k := range []int{1, 3, 5, 10} {
			if place >= 0 && place < k {
				within[k]++
			}
		}
		if place < 0 || place >= 3 {
			t.Logf("%q: %s is at %d, after %v", task, want, place+1, names[:min(3, len(names))])
		}
	}
	t.Logf("of %d tasks among %d tools, the tool that is meant is the first for %d, within 3 for %d, 5 for %d, 10 for %d",
		len(tasks), len(x.tools), within[1], within[3], within[5], within[10])
	if within[1] < len(tasks)*9/10 || within[5] < len(tasks) {
		t.Errorf("want nine tenths of them first, and all within 5; see docs/gym.md")
	}
}
