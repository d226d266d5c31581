package quality

import "strings"

// StopWords are the words of at least 4 letters that Keywords leaves out, because they occur
// in any request.
const StopWords = `
about above across after again against also although always among another around because been
before being below between both cannot come comes could dear does doing done down during each
either else even ever every following from further gave gets give given gives goes going have
having hence here hers herself himself however http https into itself just keep kept know known
least less like likely made make makes making many maybe might more most much must myself need
needs neither never next none once only onto other others ought ours ourselves over please quite
rather really same shall should since some something still such sure take taken takes than thank
thanks that their theirs them themselves then there therefore these they thing things this those
though through thus together told toward towards under unless until upon used uses using very
want wants well went were what whatever when where whether which while whom whose will with
within without would your yours yourself yourselves`

// stopWord has each of StopWords.
var stopWord = func() map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.Fields(StopWords) {
		words[word] = true
	}
	return words
}()
