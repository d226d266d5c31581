package narration

// The words of narration. All patterns read lower case with straight apostrophes.

const (
	// nouns name what artifacts are.
	nouns = `(?:(?:code|api|user|release|meeting|press|job|cover|blog|lesson|test|story|product|incident|config|configuration|docker|unit) )?` +
		`(?:abstract|agenda|agreement|analysis|analyses|announcement|answers?|article|articles|artifacts?|assessment|audit|bibliography|bio|biography|breakdown|brief|briefing|budget|caption|captions|` +
		`cards?|cases|catalog|catalogue|changelog|chapter|chapters|charter|chart|checklist|class|classes|code|codebase|comparison|component|components|conclusion|config|configuration|content|contents|contract|copy|` +
		`critique|csv|css|cv|data|dataset|deck|deliverables?|description|descriptions|design|diagram|dialogue|diff|dockerfile|docs?|document|documents|documentation|draft|drafts|e-?mails?|endpoint|endpoints|entry|entries|essay|` +
		`eulogy|evaluation|fable|faqs?|feedback|files?|findings|form|function|functions|glossary|graph|guide|guidelines|haiku|handbook|highlights|how-to|html|implementation|index|instructions|introduction|inventory|invoice|issue|` +
		`itinerary|json|lesson|letter|letters|limerick|lists?|log|lyrics|makefile|manifest|manual|markdown|matrix|memo|memorandum|menu|message|messages|methods?|migration|minutes|module|modules|monologue|narrative|newsletter|notes|` +
		`obituary|outline|output|overview|pages?|parts?|(?:first|second|other|next) half|paragraphs?|patch|piece|pipeline|pitch|plan|plans|playbook|poem|poems|points|policy|postmortem|post-mortem|post|posts|presentation|profile|program|proposal|quer(?:y|ies)|questionnaire|quiz|` +
		`readme|recap|recipe|recommendations|record|records|references|regex|release|reply|report|reports|requirements|response|results|r[eé]sum[eé]|review|revision|rewrite|roadmap|runbook|scene|schedule|schema|screenplay|scripts?|` +
		`sections?|slides?|snippets?|solution|song|sonnet|spec|specification|speech|spreadsheet|statement|steps|stor(?:y|ies)|stylesheet|summary|summaries|survey|syllabus|synopsis|table|tables|takeaways|tale|template|tests?|test suite|text|` +
		`thread|ticket|timeline|toast|transcript|transcription|translation|tutorial|tweets?|version|versions|work item|workflow|worksheet|xml|yaml)`
	// fileName looks like one.
	fileName = `[\w/~.-]*\w\.(?:md|markdown|txt|json|jsonl|ya?ml|csv|tsv|py|go|js|jsx|tsx?|html?|docx?|pdf|sql|sh|xml|toml|ini|rs|java|rb|c|cpp|h|css|xlsx?|pptx?|tex|rst|ipynb|log|tf|kt|swift|php)\b`
	// adverbs may precede any verb.
	adverbs = `(?:(?:now|first|also|just|quickly|then|finally|next|already|successfully|gone ahead and|go ahead and|went ahead and|start by|begin by|try to|proceed to|carefully|actually|simply|briefly|immediately|directly|therefore|help you|going to) )*`
	// makes are verbs of making in the present.
	makes = `(?:create|write|draft|compile|save|store|generate|produce|prepare|put|compose|output|provide|present|deliver|finali[sz]e|assemble|record|submit|format|make|build|implement|consolidate|synthesi[sz]e|summari[sz]e|outline|` +
		`document|rewrite|revise|structure|organi[sz]e|design|complete|finish|turn|convert|export|translate|polish|lay|set up|fill|give you|show you|add|begin|start|continue|fix|correct|edit|refine|restructure|expand|extract|render|upload|attach|include|merge|combine|wrap)`
	// making is the same while it is done.
	making = `(?:creating|writing|drafting|compiling|saving|storing|generating|producing|preparing|putting|composing|outputting|providing|presenting|delivering|finali[sz]ing|assembling|recording|submitting|formatting|building|implementing|` +
		`consolidating|synthesi[sz]ing|summari[sz]ing|outlining|documenting|rewriting|revising|completing|finishing|updating|marking|adding|setting|calling|uploading|exporting)`
	// looks are verbs of looking into something.
	looks = `(?:read|check|look|review|analy[sz]e|examine|inspect|verify|double-check|search|go through|explore|gather|collect|take a (?:closer |quick )?look|get started|dig|dive|investigate|find|pull|scan|study|confirm|validate|move on|proceed|work|` +
		`think|figure|fetch|run|see|trace|compare|identify|list)`
	// made are verbs of making in the past.
	made = `(?:saved|stored|created|written|wrote|generated|produced|prepared|put together|compiled|drafted|completed|finished|finali[sz]ed|updated|added|attached|composed|assembled|recorded|uploaded|exported|formatted|structured|organi[sz]ed|` +
		`implemented|built|made|rewritten|rewrote|revised|designed|documented|summari[sz]ed|outlined|submitted|refactored|translated|converted|provided|included|fixed|edited|polished|corrected|extended|expanded|marked|set|condensed|restructured|` +
		`incorporated|consolidated|pulled together|laid out|modified|delivered|placed|merged|broken)`
	// will begins an intention.
	will = `(?:let me|i'll|i will|i'm (?:now |just |also )?going to|i am (?:now |just |also )?going to|i'm (?:now )?about to|i am (?:now )?about to|i (?:now |still |also |just )?need to|i should|i can|i want to|i'd like to|i shall|i must|time to|it's time to|i'm now ready to|i'm ready to|i am ready to)`
	// toThis leads to what is made, over at most seven words.
	toThis = "(?:[\\w'\".,/`é-]+ ){0,7}?[*_`\"']*"
	// det are the words that start the name of something that the reader knows or reads about.
	det = `(?:the|this|that|these|those|your|a|an|all|both|each|every|its|our|my|new|final|complete|separate|detailed|comprehensive|one|two|three|four|five) `
	// it stands for the artifact.
	it = `(?:this|it|that|these|them|everything|all of (?:this|it|that)|all the (?:information|data|findings|pieces)|what i(?:'ve| have)? (?:found|learned|gathered|have))`
)

var (
	// How an answer begins, and not a text.
	hail = lazily(`^(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|alright|all right|great|perfect|excellent|got it|understood|no problem|happy to help|wonderful|definitely|you got it|will do|` +
		`thanks for [^.!,]{1,60}|thank you for [^.!,]{1,60}|great question|good question|all done|all set|done|voil[aà]|here we go|glad to help|sounds good)(?:[,.!:]|\s*[—–-]|$)\s*`)
	noteWord = lazily(`^(?:(?:please )?note(?: that|:|,)|fyi[:,]?|(?:hinweis|anmerkung|remarque|nota|nb|n\.b\.|edit|caveat|disclaimer) ?:)\s*`)
	// A clause before an announcement: "Based on the files, here is …".
	basis    = lazily(`^[a-z][^:!?.]{2,160}?, (here(?:'s| is| are)|below (?:is|are)|i've|i have (?:now |also )?(?:` + made + `)|i'll|i will|i'm going|i am going|let me|the following is|i can now|i now)\b`)
	stepWord = lazily(`^(?:next|now|first|then|finally|lastly|so|and|second|third|with that(?: done)?|after that|to start|to begin|before that|again|also|once done)(?: up)?,? ` +
		`(i'll |i will |let me |i'm |i am |i need |i can |i've |i have |i want |i should |time to )`)

	artifactNoun = lazily(`\b` + nouns + `\b`)
	question     = lazily(`^(?:how|what|why|where|when|who)\b`)
	// partNoun names what is as often a part of a document as a document.
	partNoun      = lazily(`^(?:the|a|an) (?:[\w-]+ )?(?:lists?|tables?|overview|steps|results|points|index|examples?|cases|parts?|sections?|class|classes|functions?|components?|methods?|entries|records?|instructions)\b`)
	definiteStart = lazily(`^(?:the|your|my|our)\b`)
	ownWords      = lazily(`\b(?:artifacts?|deliverables?|work items?|w\d+|as requested|you(?:'ve| have)? (?:asked|requested|wanted)|your (?:request|review)|for you|workspace|` + fileName + `)(?:\W|$)|\b(?:the|this) (?:file|document|report|draft|script)\b(?: (?:below|above|now|to disk))?[.:!]?$`)
	// Content mentions later and of habit; narration of now.
	later  = lazily(`\b(?:when|once|as soon as|whenever|tomorrow|tonight|(?:next|this|every|each) (?:week|month|year|day|monday|tuesday|wednesday|thursday|friday|morning|evening|time|quarter|sprint)|by (?:monday|tuesday|wednesday|thursday|friday|the end|noon|eod|end of|next)|weekly|daily|monthly|always|never|someday|one day|on (?:monday|tuesday|wednesday|thursday|friday))\b`)
	finite = lazily(`\b(?:is|are|was|were|has|have|had|took|takes|requires|required|can|will|should|must|may|might|means|makes|made)\b`)
	// What follows narration and is about the artifact.
	anaphor = lazily(`^(?:it|this|that|that's|they|these|each|both|all (?:of|sections|tests|the)|the (?:report|document|file|script|summary|code|draft|artifact)|you can|i|i've|i'll|i'm|i'd|if you|let me|please|feel free|happy to|just|would you|hope|thanks|thank you)\b`)

	selfIntention  = lazily(`^` + will + ` ` + adverbs + `(?:` + makes + `|update|set|mark|call|use)\b.*\b(?:artifacts?|deliverables?|work[ _]items?|work_\w+|w\d+)\b`)
	updateNow      = lazily(`^(?:let me ` + adverbs + `|(?:i'll|i will) now )(?:update|change|mark|set|clean up|rework|tweak) ` + det + `(?:[\w-]+ ){0,4}` + nouns + `\b`)
	plainIntention = lazily(`^(?:let me|i'll|i will|i'm going to) ` + adverbs + `(?:write|create|draft|compile|save|store|generate|produce|prepare|put together|compose) ` + det + `(?:[\w-]+ ){0,3}` + nouns + `(?: now| first| together| for you| below)?[.:!]$`)
	makeIntention  = lazily(`^` + will + ` ` + adverbs + makes + ` (?:up )?(?:out )?(?:together )?(?:with )?(?:` + it + `\b|` + toThis + `(?:` + nouns + `|` + fileName + `)(?:\W|$))|^i(?:'m| am) (?:now )?` + making + ` ` + toThis + nouns + `\b`)
	lookIntention  = lazily(`^(?:let me|i'll|i will|i'm going to|i am going to|i need to|i should) ` + adverbs + `(?:` + looks + `|` + makes + `)\b`)
	gerund         = lazily(`^(?:now )?` + making + ` (?:this|the|it|my|your|w\d|to|on|a|an|everything)\b`)

	madeAccount    = lazily(`^(?:i've|i have) ` + adverbs + made + ` (?:up )?(?:` + it + `\b|` + det + toThis + `(?:` + nouns + `|` + fileName + `)(?:\W|$))|^i ` + adverbs + `(?:saved|stored|created|wrote|generated|prepared|put together|compiled|drafted|exported|updated|completed|finished|produced|reformatted) (?:` + it + `\b|` + toThis + `(?:` + nouns + `|` + fileName + `)(?:\W|$))`)
	smallAccount   = lazily(`^(?:i've|i have|i) ` + adverbs + `(?:also )?(?:` + made + `|kept|used|tried|focused|aimed|based|left|made sure|ensured|addressed|followed|chose|chosen|assumed|cited|covered|double-checked|verified|tested|avoided|put|placed|arranged|ordered|simplified|highlighted|grouped|sorted|split|removed|replaced|added|limited|treated|marked|omitted|flagged|noted|went with|gone with|opted)\b`)
	passiveAccount = lazily(`^all (?:of )?(?:the )?(?:requested|required) \w+ (?:have been|are|were) |^(?:this|that|it|everything|all (?:of it|changes|files|sections)|(?:the|this|your|these|both|all) ` + toThis + nouns + `) (?:has|have) (?:now |also |just |already )?been (?:now |also |successfully |fully )*(?:saved|stored|recorded|exported|persisted)\b|` +
		`^(?:this|it|everything|(?:the|this|your) ` + toThis + `(?:report|document|file|artifact|deliverable|script|summary|draft|work item|email|letter|code)s?) (?:has|have) (?:now |also |just |already )?been (?:now |also )?(?:successfully |fully )?(?:written|created|generated|completed|prepared|compiled|finali[sz]ed|finished|produced|uploaded|submitted|drafted|updated)(?: (?:successfully|to|in|as|at|for|based|with|according|and)\b.*)?[.!]?$`)
	weakPassive = lazily(`^(?:the|this|your) ` + toThis + nouns + ` (?:has|have) (?:now |also |just |already )?been (?:now |also )?(?:(?:successfully |fully )?(?:created|written|generated|prepared|compiled|finali[sz]ed|completed|drafted)(?: successfully)?(?: (?:to|in|as|at|for|based|with|according|and|from|using)\b[^,]*)?[.!]?$|(?:updated|added|submitted|uploaded) successfully)`)
	lookAccount = lazily(`^(?:i've|i have) ` + adverbs + `(?:reviewed|read|analy[sz]ed|examined|checked|gone through|looked (?:at|into|through)|compared|collected|gathered|searched|explored|studied|confirmed|inspected|investigated|researched)\b`)
	// ownVoice are the statements of a writer about itself; they count only at the edges
	// of a text that is not in the first person.
	ownVoice   = lazily(`^(?:(?:i've|i have) ` + adverbs + `(?:[a-z]+ed|written|made|kept|left|put|taken|chosen|gone|drawn|built|given|begun|done|set|split|cut|shown|run)|i believe|i think|i trust|i (?:also |then |just )?[a-z]+ed|i (?:left|kept|wrote|made|took|chose|went|put|drew|built|gave|set)) `)
	attributed = lazily(`, (?:\w+ ){0,3}(?:said|says|asked|promised|thought|replied|whispered|shouted|told|murmured|cried|answered|wrote)\b`)
	rightNow   = lazily(`\bnow\b|(?:\.\.\.|…)$`)
	// toPublic turns to readers whom the writer does not know.
	toPublic     = lazily(`\b(?:comments?|pull request|repository|newsletter|our|us|office)\b|^feel free to (?:open|contact|connect|contribute|join|fork|submit|report|call|visit|drop|file|email|stop)\b|\bto (?:open an issue|contribute)\b`)
	asYouSaid    = lazily(`, (?:just )?(?:as|like|what|which) you\b`)
	proposesWork = lazily(`^(?:(?:i'd|i would) be (?:happy|glad|delighted)|i(?:'m| am) (?:happy|glad)) to ` + makes + `\b|^i can (?:certainly |definitely )?help\b`)
	doneWith     = lazily(`^i(?:'m| am) (?:now )?(?:done|finished) (?:with|writing|creating|drafting)\b`)
	ofMe         = lazily(`\bme\b|^(?:i )?(?:really )?hope\b|^you can\b`)
	found        = lazily(`\b(?:found|discovered|identified|recommend)\b`)
	readyNow     = lazily(`^(?:the|this|your) ` + toThis + nouns + ` (?:above |below )?(?:is|are) (?:now )?(?:also )?(?:complete|completed|ready|done|finished|saved|stored)(?: (?:and|for|to|in|as|at|now)\b.*)?[.!]?$|^(?:it|this|everything) is (?:now )?(?:complete|ready|done|saved|stored)\b.*[.!]$`)
	overNow      = lazily(`^(?:this|that) (?:completes|concludes|finishes|wraps up|should (?:cover|be|give you|do)|covers (?:all|everything)) .*\b(?:` + nouns + `|task|request|everything|need|all)\b|^that's (?:the (?:complete|full|final|whole|entire)|everything for)\b|^(?:this|the) ` + nouns + ` (?:now )?(?:covers|includes|addresses|contains|meets|satisfies) (?:all|everything|each|every)\b.*(?:request|asked|need|required|requirement)`)
	knownEnough  = lazily(`^i (?:now )?(?:have|'ve got) (?:now )?(?:gathered |collected |got )?(?:all|enough|everything|sufficient|a (?:clear|good|full|complete|solid|comprehensive) (?:picture|understanding|overview))\b.*\b(?:to|need|information|context|data|of)\b|^i(?:'ve| have) (?:now )?(?:read|reviewed|analy[sz]ed|examined|gone through|looked (?:at|through)|gathered|finished reading|completed)\b.*\b(?:and|so|now|,) ?(?:i )?(?:can|will|'ll|am ready|have (?:enough|everything|all)|ready|now (?:write|have))\b`)
	taskDone     = lazily(`^(?:the )?(?:work item|task|item|todo)(?: "[^"]*"| w\d+| \d+)? (?:is |has been )?(?:now )?(?:complete|completed|done|finished|marked)\b|^(?:marked|marking|set|setting) (?:work item |item )?w\d+ `)
	savedTo      = lazily(`^(?:artifact|file|report|document|deliverable|draft|output) (?:successfully )?(?:saved|stored|created|written|updated|recorded)\b|^(?:successfully )?(?:saved|stored|written|wrote|created|exported|output written|generated|uploaded) (?:this |the |it |a |[\w-]+ ){0,5}?(?:to|in|as|at|under|for|artifact|file)\b`)
	listsChanges = lazily(`^(?:(?:a |here's a |here is a )?(?:quick |brief |short )?(?:summary|overview|list|recap) of )?(?:what i(?:'ve| have)? (?:did|done|changed|added|included|wrote|covered|updated|fixed)|(?:the )?(?:key |main |some |notable )?(?:changes|edits|updates|improvements|assumptions|choices|decisions|additions) (?:that )?i(?:'ve| have)? (?:made|took|taken)|(?:a few|some|quick) notes (?:on|about) (?:this|the|my) ` + nouns + `)\b.*:$`)

	handsOver      = lazily(`^here (?:you go|it is|they are|you are|goes|we go)\b|^here(?:'s| is) (?:what|everything) i(?:'ve| have)? (?:found|came up with|come up with|wrote|written|have|put together|got|learned|drafted|prepared|produced|created|made|discovered|gathered)\b|^(?:see|find) (?:below|attached)\b|^please (?:find|see) (?:below|attached|the)\b|^(?:as requested|as you (?:asked|requested)|per your request)\b`)
	requested      = lazily(`^(?:as requested|as you (?:asked|requested)|per your request|in response to your request)\b`)
	hereIs         = lazily(`^(?:here|below|attached|included below)(?:'s| is| are| comes|,? you(?:'ll| will| can) find) (.*)$`)
	followingThis  = lazily(`^(?:the )?following ` + nouns + ` (?:summari[sz]es|contains|covers|describes|provides|presents|outlines|shows|details|includes|explains|addresses)\b.*[.:]$`)
	followingWhole = lazily(`^(?:the )?following (?:is|are) (?:the|your|my|a) (?:complete|completed|full|final|finished|entire|whole|updated|revised|requested) (?:[a-z-]+ ){0,2}?` + nouns + `\b[^.:]{0,80}[.:]?$`)
	thisIs         = lazily(`^(?:this|these) (?:is|are) (?:the|your|my|a|an) ` + toThis + nouns + `\b.*:$|^you can (?:use|run|copy|paste|try) (?:this|the following|these)\b.*:$`)
	following      = lazily(`^(?:the )?following (?:is|are) (?:the|your|my|a|an) ` + toThis + nouns + `\b|^(?:the )?following ` + nouns + ` (?:was|has been|is) (?:prepared|created|written|based)`)

	ofChanges       = lazily(`\b(?:chang(?:e|es)|adjust\w*|modif\w+|revis\w+|edits?|tweak\w*|refine\w*|refinements?|tone|version|draft|anything else|format|longer|shorter|rewrite|expand|rework|artifact|deliverable|another (?:section|format|version))\b`)
	revisionRequest = lazily(`^(?:please |just |and |so )*(?:let me know|tell me|say so|just say the word) (?:if|whether|how|what|when|which|should)\b.*\b(?:me to|i should|chang(?:e|es)|adjust\w*|modif\w+|revis\w+|edits?|tweak\w*|refine\w*|expand\w*|different|format|version|anything else|something else|further|additional|more detail|more details|else|any more|feedback|sections?|improve\w*|works for you|meets|looks good|need (?:anything|any)|thoughts|you think|(?:you'd|you would) (?:like|prefer)|you (?:want|need|prefer))\b|` +
		`^(?:would you like|do you want|want me|shall i|should i|would you like (?:any|a|another)|is there anything (?:else|you)|do you need (?:anything|any)|can i help|may i|anything else (?:i|you))\b.*\?$|` +
		`^if (?:you|there|anything|any|it|this|that)\b.*?, (?:i can|i'd be|i'll|i'm|i would be|i will|let me know|feel free to (?:ask|let|tell|adjust|modify|edit|change)|just (?:ask|say|let me|tell)|please (?:let me|tell me|ask)|happy to|don't hesitate|tell me)\b|` +
		`^(?:please )?feel free to (?:adjust|modify|edit|customi[sz]e|change|tweak|adapt|request|let me know|ask (?:for|me)|tailor|revise)\b|` +
		`^(?:i'd|i would) be (?:happy|glad) to\b|^i(?:'m| am) (?:happy|glad|available) to\b|` +
		`^i can (?:also |now )?(?:adjust|expand|add|revise|modify|provide|refine|create|write|turn|convert|extend|tailor|shorten|rewrite|generate|make)\b.*\b(?:if|you|version|format|it|this)\b|^happy to\b|` +
		`^(?:please )?(?:review (?:it|this|the ` + nouns + `)|take a look|have a look) and let me know|^looking forward to your (?:feedback|thoughts)|^ready for (?:your )?(?:review|feedback|the next)|^does (?:this|that|it) (?:work|look|meet|help)\b.*\?$|^how does (?:this|that|it) (?:look|sound)\b.*\?$`)
	plainInvitation = lazily(`^(?:please |just )*let me know\b|^(?:please )?(?:feel free|don't hesitate|do not hesitate) to\b|^please (?:review|check|have a look|take a look|verify|confirm)\b|^(?:i )?(?:really )?hope (?:this|that|it|you|these)\b.*(?:help|useful|find|meets|works|like|looking for|enjoy|what you)|^(?:enjoy|good luck|happy (?:coding|writing|reading|baking|cooking|travels|hiking))\b.*!$|` +
		`^(?:i )?(?:really )?hope (?:this|that|it|these|the|you)\b.*\byou\b|^you (?:may|might) (?:want|wish|need) to\b|^(?:this|these|it) (?:should|will|would) (?:give|help|provide|make|allow|let|cover|work|meet|get|save)\b.*\byou(?:r|rs)?\b|^you can (?:now |also |easily |of course )?(?:adjust|change|edit|modify|customi[sz]e|replace|extend|tweak|adapt|copy)\b|` +
		`^you can (?:now )?(?:find|view|open|download|access|see) (?:it|this|(?:the|your) (?:full |complete |final |saved )*(?:report|file|document|artifact|deliverable|summary|script|output))\b`)
	describes    = lazily(`^(?:this|the|the above) (?:above )?(?:\S+ )?(?:code|script|function|program|query|implementation|class|component|module|config|configuration|dockerfile|workflow|schema|solution|version|snippet|file|test|tests|regex|pipeline|manifest)\b`)
	aboutProgram = lazily(`^(?:this|the|it|you can|run|to (?:run|use)|note|here|below|simply|make sure|i|i've|let me|the above|key|both|all|save|let's|first|now|next|replace|change|use|store|copy|put|place|call)\b`)
)
