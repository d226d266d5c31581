package workitem
import ("testing";"strings";"time")
func TestDbg(t *testing.T){
 for _,s:=range []string{"a. ","Sure! ","sure, ","I've saved it. ","\n","{\n","I \n","\"","`","if x, ","a, ","- a\n","```\n","Dear x,\n","A: b\n","(((","let me know if ", "i have ", "x 'x ", "---\n","Regards\n"} {
  for _,suffix:=range []string{"","\nI've saved the report.","\n\nThe end. Let me know."} {
  b:=time.Now(); Narration(strings.Repeat(s,300000/len(s))+suffix); if d:=time.Since(b); d>150*time.Millisecond {t.Logf("%q %q %v",s,suffix,d)}
 }}
}
