package narration

// german holds the signs of narration in German.
var german = map[signs][]string{
	signHail: {"^ klar|gerne|gern|natürlich|selbstverständlich|sicher|verstanden|perfekt|super|okay|alles|fertig|erledigt|prima $|,|klar", "^ kein problem", "^ sehr|sehr|aber gerne|gern", "^ gerne|gern|klar|natürlich|sicher|selbstverständlich *1 hier|ich", "^ vielen? dank|danke für *1 die|den|das|deine|ihre", "^ wie|so besprochen|gewünscht|versprochen|vereinbart|erbeten"},
	signHand: {"^ hier|anbei|unten|nachfolgend|nachstehend|im *1 ist|sind|kommt|folgt|findest|finden|also|nun|die|der|das|ein|eine|mein|meine|dein|deine|ihr|ihre", "^ das|dies|folgende|der|die folgende|ist|sind|folgt *4 @text", "^ die|der|das *2 @text *2 findest|lautet|folgt", "^ mein|meine|dein|deine|ihr|ihre *2 vorschlag|@text", "^ zweiter|neuer|erster|überarbeiteter|kürzere|überarbeitete|endgültige|neue *1 versuch|@text", "^ so|folgendermaßen könnte|könntest|könnten"},
	signWill: {"ich werde *9 @macheninf", "^ ich @mache", "^ @mache ich", "^ nun|jetzt|dann *1 @mache|werde ich", "lass|lassen mich|sie *8 @macheninf", "ich möchte|will|kann nun|jetzt|noch? *6 @macheninf", "^ ich *1 fahre|mache|setze *6 fort|weiter"},
	signLook: {"ich *1 prüfe|suche|sehe|lese|schaue|recherchiere", "lass|lassen mich *6 prüfen|suchen|nachsehen|schauen|nachlesen"},
	signDid:  {"ich habe|hab *9 @gemacht", "habe|hab ich *9 @gemacht", "^ @gemacht und|habe|sind|ist|wie", "ich *9 @gemacht habe", "wurde|wurden|ist|sind *6 @gemacht $", "ich ließ|ergänzte|kürzte|änderte|ersetzte"},
	signPart: {"@next *1 @part", "folgenden|nächsten|übrigen|restlichen punkte|punkten|abschnitt|teil|schritte", "teil|abschnitt 1|2|3|eins|zwei *1 von"},
	signRequest: {"wie *1 gewünscht|besprochen|gewollt|verlangt|vorgeschlagen|angefragt|erbeten|gefordert|abgesprochen|vereinbart", "wie du|sie *4 wolltest|wollten|gesagt|gewünscht|geschrieben|vorgeschlagen|gebeten|angegeben|beschrieben|erwähnt", "du|sie *6 gewünscht|gebeten|geschickt|genannt|erwähnt|angegeben|verlangt|wolltest|hattest|vorgegeben|gesendet|bereitgestellt", "deinen|deine|deiner|deinem|ihren|ihre|ihrer|ihrem *1 notizen|vorgaben|wunsch|wünschen|anfrage|auftrag|angaben|stichpunkten|stichpunkte|entwurf|anforderungen|vorlage|bitte|nachricht|mail|e-mail|datei|text|unterlagen|kommentare|anmerkungen",
		"gewünschte|gewünschten|gewünschter|angeforderte|angeforderten|erbetene", "um das|die|den|was du|sie"},
	signProposal: {"^ soll|sollte|kann|darf ich", "^ möchtest|möchten|willst|wollen|wünschst|wünschen|brauchst|brauchen du|sie", "wenn|falls du|sie *6 möchtest|möchten|willst|wollen|wünschst|wünschen|magst|brauchst|brauchen", "^ sag|sagen|gib|geben|lass|lassen|melde|melden *6 bescheid|wissen|dich|sich|wenn|falls|ob", "^ gerne|gern *3 ich", "ich kann|könnte *2 auch|gerne|gern|noch|jederzeit|bei|alternativ", "^ passt|ist|gefällt *2 das|so|dir|ihnen", "mache|passe|ändere|ergänze|schreibe|füge ich *2 gern|gerne|noch", "brauchst|benötigst|benötigen|brauchen du|sie noch|weitere|eine", "soll ich"},
	signPolite:   {"^ ich? hoffe *2 das|dies|es|der|die|dir|ihnen", "^ viel|gutes erfolg|spaß|gelingen", "^ bitte *3 prüfe|prüfen|ersetze|ersetzen|ergänze|ergänzen|beachte|beachten|füge|trage|passe", "^ du|sie kannst|können *9", "^ melde|melden dich|sich|sie", "zögere|zögern nicht|sie"},
	signSaved:    {"@text|@file|es *2 liegt|steht|befindet|findest|finden|ist *2 unter|in|im", "@text|@file|es|alles *6 gespeichert|abgelegt|gesichert|exportiert|hochgeladen|geschrieben", "^ gespeichert|abgelegt|gesichert", "gespeichert|abgelegt|gesichert|exportiert unter|als|in|im"},
	signDone:     {"@text|aufgabe|alles|arbeit *5 fertig|abgeschlossen|erledigt|vollständig|fertiggestellt|erstellt", "^ damit ist|sind|wäre", "^ das|dies ist|war|wäre *1 der|die|das|alles|es", "^ fertig|erledigt"},
	signModel:    {"als ki|sprachmodell|assistent", "ich bin *2 ki|sprachmodell", "keine|kein|nicht *2 rechtsberatung|beratung|steuerberatung|anwalt", "kann *3 keine *1 rechtsberatung|beratung|auskunft"},
	signGaps:     {"platzhalter|platzhaltern|platzhaltern", "eckigen klammern", "offen|frei|leer gelassen"},
	signSize:     {"kürzer|länger|förmlicher|knapper|formeller|lockerer|persönlicher", "wörter|zeichen|seiten|minuten|wörtern|zeilen|strophen|seite|zeilen gekürzt|lang|$"},
	signOnward:   {"weiter|fort mit|geht|im", "^ fortsetzung|weiter", "folgt|folgen|kommt *4 @text|teil|rest|hälfte|strophe|abschnitt", "ich fahre|mache *4 fort|weiter"},
	signSorry:    {"ich konnte|kann *9 nicht|nur|leider|kein|keine", "konnte ich *9 nicht|nur|kein|keine", "^ leider", "tut mir leid", "bin *2 davon ausgegangen", "gehe *2 davon aus", "angenommen"},
	signYou:      {"eure|eurer|euren|euer|euch|du|dir|dich|dein|deine|deinen|deinem|deiner|möchtest|soll"},
	signMe:       {"ich|mir|mich|mein|meine|meinen"},
	signLetter:   {"absatz|gruß|grußformel|schluss|anrede|einleitung|teil *1 des|der|im|für|zum|den brief|briefs|briefes|mail|e-mail|schreiben|schreibens", "@next absatz"},
	signVoice:    {", *3 sagte|rief|fragte|dachte|antwortete|meinte|flüsterte|sagt|versprach", "in diesem|dieser *1 beitrag|artikel|kapitel|aufsatz|abschnitt|bericht|folge|arbeit|anleitung|buch"},
}
