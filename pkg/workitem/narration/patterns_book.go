package narration

import "sync"

// foreignWords are the verbs of making in the other languages.
var foreignWords = map[string]string{
	"gemacht": `erstellt geschrieben gekürzt ergänzt gespeichert ersetzt angepasst hinzugefügt weggelassen überarbeitet vorbereitet verfasst zusammengefasst formuliert gehalten geändert korrigiert entfernt sortiert aktualisiert übersetzt verschoben
		eingefügt geprüft berücksichtigt umgesetzt zusammengestellt aufgenommen abgelegt fertiggestellt abgeschlossen gelesen angenommen gelassen benutzt verwendet gestrafft gegliedert umgeschrieben erweitert eingebaut markiert verzichtet aufgeteilt ausgearbeitet entworfen vereinfacht erledigt gemacht generiert strukturiert beschränkt gewählt angelegt exportiert vermieden gestrichen bereinigt umformuliert ausgelassen`,
	"macheninf": `schreiben erstellen speichern ergänzen kürzen überarbeiten vorbereiten verfassen zusammenfassen anpassen fortfahren hinzufügen machen beginnen anfangen weitermachen fortsetzen zusammenstellen erweitern ablegen übersetzen einfügen entwerfen aktualisieren abschließen fertigstellen formulieren umsetzen liefern`,
	"mache":     `schreibe erstelle speichere ergänze kürze überarbeite verfasse fasse passe füge mache beginne setze stelle erweitere lege übersetze entwerfe aktualisiere formuliere liefere fahre`,
	"faire":     `rédiger écrire créer préparer continuer enregistrer ajouter passer compléter corriger résumer traduire adapter modifier terminer commencer poursuivre générer mettre proposer raccourcir finaliser structurer sauvegarder produire développer reformuler transformer`,
	"fais":      `rédige écris crée prépare continue enregistre ajoute passe complète corrige résume traduis adapte termine commence poursuis génère finalise sauvegarde reprends`,
	"fait": `rédigé rédigée écrit écrite créé créée gardé gardée ajouté ajoutée ajoutés ajoutées supprimé supprimée supprimés raccourci raccourcie corrigé corrigée corrigés préparé préparée relu relue résumé résumée enregistré enregistrée modifié modifiée remplacé remplacée tiré laissé laissée adapté adaptée
		traduit traduite terminé terminée complété complétée mis mise intégré intégrée structuré structurée reformulé conservé conservée évité choisi retiré retirée ôté tenu opté respecté limité regroupé vérifié suivi repris simplifié généré généré sauvegardé sauvegardée fait finalisé ajusté inclus omis imaginé élaboré réécrit réduit`,
	"hacer": `escribir redactar crear preparar continuar guardar añadir pasar completar corregir resumir traducir adaptar modificar terminar empezar seguir generar elaborar actualizar acortar incluir hacer ampliar cambiar ajustar convertir`,
	"hago":  `escribo redacto creo preparo continúo guardo añado completo corrijo resumo traduzco adapto termino sigo genero elaboro actualizo procedo`,
	"hecho": `escrito redactado creado preparado guardado añadido completado corregido resumido traducido adaptado modificado terminado quitado eliminado cambiado incluido mantenido dejado elaborado actualizado acortado omitido reescrito revisado sustituido organizado usado evitado seguido simplificado ajustado puesto hecho conservado reducido optado procurado intentado generado ordenado agrupado`,
}

// phrases returns the signs of narration in all languages. They are read when the
// first artifact is checked; most processes never check one.
var phrases = sync.OnceValue(func() *phrasebook {
	all := map[string]string{}
	for _, table := range []map[string]string{words, foreignWords} {
		for name, list := range table {
			all[name] = list
		}
	}
	return newPhrasebook(all, english, german, french, spanish)
})

func leads() classes { return phrases().names["lead"] }

func files() classes { return phrases().names["file"] }
