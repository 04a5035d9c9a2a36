/* column_words.c: see column_words.h. Words are without case and accents (text_fold.h). A word of four bytes or more also counts as a
 * part of a compound ("Bestelldatum", "kundennummer"), a shorter one, or one that ends with a point, as a whole word alone. */
#include "data/import/column_words.h"

#include "data/import/column_names.h"
#include "data/import/text_fold.h"

#include <string.h>

typedef struct word_list {
    double weight;
    const char *words;
} word_list;

/* A person before a thing, a thing before a visit or an order. The last list that matches decides: a "user session" is a
 * session. */
static const word_list sequence_words[] = {
    {4, "tail. tailnum remote_addr device geraet appareil dispositivo machine maschine maquina macchina automate host "
        "node sensor probe "
        "vehicle fahrzeug vehicul mmsi vessel ship. imei unit. robot meter zaehler server. ip. mac. plate serial "
        "run. chat station. asset anlage install pod. involvedobject namespace. reader. gateway website phone "
        "telefon 设备 机器"},
    {5.3, "mrn. msisdn athlete nick. nickname editor contributor patron. patronid respondent kontakt kennzeichen "
          "holder voter "
          "asiakas kayttaja zakaznik uzivatel ugyfel felhasznalo vasarlo korisnik kupac bruger bruker "
          "pelanggan pengguna "
          "khach utilizator 회원 고객 사용자 환자 πελατ πελάτ χρηστ χρήστ عميل مستخدم לקוח ลูกค้า "
          "user usr. uid. visitor customer kunde kundin kund. klant client cliente klient usuario utente "
          "utilisateur gebruiker anvandar kullanici uzytkownik member mitglied membre miembro membro socio "
          "subscriber abonn account konto kontonummer compte. cuenta conta. patient paciente paziente pacient "
          "attendee person. person_ player jugador joueur spieler gamer giocatore student schueler eleve alumn learner "
          "reviewer author listener viewer employee mitarbeiter empleado dipendente ospite huesped gast. guest "
          "passenger driver. rider caller owner requester household haushalt card karte versichert distinct actor "
          "email e-mail mail. login. username wallet subject. buyer shopper acheteur comprador profile. contact "
          "borrower donor participant panelist citizen tenant anonymous cookie guid. reviewerid from. sender "
          "subjectid kundenkarte musteri hasta ogrenci 用户 会员 客户 顾客 利用者 顧客 ユーザ 会員 患者 玩家 学生 "
          "игрок пользовател клиент "
          "покупател абонент пациент студент"},
    {3, "ipaddr ip_addr fingerprint encounter enc. csn. slip. "
        "session sessie visit besuch case. case_ caseid ticket incident issue. vorgang basket cart. order. "
        "orderid bestell commande pedido bestellung dossier process. trace. conversation thread episode stay. "
        "hadm invoice rechnung facture booking reservation trip. ride transaction txn. receipt bon. kassenbon 订单 "
        "заказ"},
    {-6, "time date datum zeit country land. city ville stadt region agent segment price amount browser language "
         "lang. currency message timezone gender age. birth day. month. year. hour. minute. second. week. weekday "
         "status type action event. url path"},
};
static const word_list time_words[] = {
    {4, "begin beginn anfang debut inizio inicio start. tm. hhmm hhmmss aika paivamaara idopont cas. tidspunkt tanggal "
        "waktu ngay 일시 날짜 시간 ημερομην תאריך تاريخ วันที่ "
        "geandert geaendert gebucht erstellt modifie cree. creado modificado creato aangemaakt skapad utworzon "
        "time date timestamp datetime tstamp stamp when. zeit datum uhrzeit tag. fecha hora. data. ora. data_ora "
        "data_hora heure horodat jour. quand tarih zaman tidpunkt tid. tijd czas dag. day. created changed "
        "occurred started purchased ordered posted sent. visited listened played watched opened. logged effective "
        "epoch unix ts. ts_ at. on. elapsed when dato pvm datetid 时间 日期 日時 日付 時刻 дата врем"},
    {2.5, "processed received upload server ingest loaded updated modified collected stored synced imported "
          "exported published collector"},
    {1.5, "end. end_ ended finish stop. closed until expir due. delivery delivered estimated valid ende fin."},
    {-6, "birth geburt naissance nacimiento dob. timezone runtime lifetime duration dauer duree delta utc_offset "
         "length zone. overtime sentiment update_count"},
};
static const word_list event_words[] = {
    {4,
     "summary betreff asunto oggetto uri. uri_ dest. destination disposition outcome verdict answer antwort respuesta "
     "risposta method lab_name survey lesson termek esemeny udalost polozka proizvod dogadaj vare. haendelse tuote "
     "tapahtuma "
     "produk "
     "barang 상품 제품 이벤트 προιον προϊόν منتج "
     "event action activit aktivit actividad attivit activity type. type_ typ. status state. state_ zustand "
     "etat. estado. stato. stage step. schritt stap etape paso. fase phase item. item_ items product produkt "
     "produit producto prodotto prodotto urun article artikel articulo articolo sku. asin track song. title. "
     "titel titre titulo film movie video. book. buch libro livre page. page_ urlpath pagepath url. path "
     "request. endpoint command category kategor categor warengruppe groep. gruppe icd diagnos wirkstoff drug. "
     "medic treatment behandlung service. servicio servizio servico leistung component exception error. "
     "errorid fehler alarm signal. kind. kind_ door. channel folder merchant opening. venue location. standort "
     "station_name skill. lexeme course kurs. kurs_ lesson quiz. programme program. sendung handelse handlung "
     "islem acao accion azione actie gebeurtenis evento zdarzen operation. operat vorgang. change. finding "
     "result. reason. line. test. code. codes procedure campaign game. sku_ lineitem dish. gericht opcode "
     "verb. interaction behavio click. view. command intent topic. theme genre. 节目 商品 事件 动作 操作 書名 "
     "商品名 предмет "
     "событи действи товар категор статус"},
    {2, "name. name. description. beschreib verwendung label. group. department. tag. artist. object. target "
        "targetid subject. component. what. brand. content. symptom reason."},
    {-4, "price preis prezzo precio prix cena preco amount betrag montant importo bedrag quantity menge ilosc "
         "cantidad anzahl qty. total sales country land. pais. pays. city ville stadt ciudad region rating score. "
         "overall latitude longitude currency wahrung agent. agent resource author assignee comment note. text "
         "body. platform browser version lang. language timezone balance duration dauer duree dur. length age. "
         "gender level latency temp. humidity value. valuenum valueuom bytes. size. weight reference birth season "
         "shuffle public. result_count filiaal branch store. os. origin direction delta count. physician doctor "
         "device plug. zip. ip. ip_ cost. revenue financial fulfillment currency time date datum zeit session sess. "
         "app_version "
         "variant elo. affected"},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct {
    const word_list *lists;
    int count;
} roles[] = {[LAPSE_COLUMN_SEQUENCE] = {sequence_words, COUNT(sequence_words)},
             [LAPSE_COLUMN_TIME] = {time_words, COUNT(time_words)},
             [LAPSE_COLUMN_EVENT] = {event_words, COUNT(event_words)}};

/* "visitTime_ID" as "_visit_time_id_": words of lower case between lines. */
static void split_words(const char *name, char *out, size_t size)
{
    char spaced[160];
    size_t used = 0;
    for (const char *at = name; *at && used + 3 < sizeof spaced; at++) {
        bool lower_before = at > name && at[-1] >= 'a' && at[-1] <= 'z';
        bool ends_capitals = at > name && at[-1] >= 'A' && at[-1] <= 'Z' && at[1] >= 'a' && at[1] <= 'z';
        if (*at >= 'A' && *at <= 'Z' && (lower_before || ends_capitals))
            spaced[used++] = '_';
        spaced[used++] = *at && strchr(" .:/-#()[]$?", *at) ? '_' : *at;
    }
    out[0] = '_';
    size_t folded = lp_text_fold(spaced, spaced + used, out + 1, size - 2);
    out[folded + 1] = '_';
    out[folded + 2] = 0;
}

/* Whether a name, after split_words, has the word first .. last of a list. */
static bool has_word(const char *name, const char *first, const char *last)
{
    char word[40];
    size_t size = (size_t)(last - first);
    if (size == 0 || size + 3 > sizeof word)
        return false;
    bool whole = last[-1] == '.' || size < 4;
    size -= last[-1] == '.';
    word[0] = '_';
    memcpy(word + 1, first, size);
    word[size + 1] = '_';
    word[size + 2] = 0;
    if (whole)
        return strstr(name, word) != NULL;
    word[size + 1] = 0;
    return strstr(name, word + 1) != NULL;
}

static bool has_any(const char *name, const char *words)
{
    for (const char *first = words; first;) {
        const char *last = first + strcspn(first, " ");
        if (has_word(name, first, last))
            return true;
        first = *last ? last + 1 : NULL;
    }
    return false;
}

double lp_column_words(const char *name, lapse_column_role role)
{
    lp_name_match usual = lp_column_name_match(name, role);
    if (usual.rank >= 0 && !usual.weak)
        return 8 - 0.05 * usual.rank;
    double found = usual.rank >= 0 ? 4 - 0.01 * usual.rank : 0, against = 0;
    char words[200];
    split_words(name, words, sizeof words);
    bool any = false;
    for (int i = 0; i < roles[role].count; i++) {
        const word_list *list = &roles[role].lists[i];
        if (!has_any(words, list->words))
            continue;
        if (list->weight < 0)
            against = list->weight;
        else
            found = role == LAPSE_COLUMN_EVENT ? (list->weight > found ? list->weight : found)
                    : any || usual.rank < 0    ? list->weight
                                               : found;
        any = true;
    }
    bool id = strstr(words, "_id_") || strstr(words, "id_") || strstr(words, "_no_") || strstr(words, "_nr_") ||
              strstr(words, "numm");
    if (role == LAPSE_COLUMN_SEQUENCE && found == 0 && against == 0 && strstr(words, "_id_") &&
        lp_column_words(name, LAPSE_COLUMN_EVENT) <= 0)
        return 1.5; /* the id of something */
    bool helps = found > 0 && id && role == LAPSE_COLUMN_SEQUENCE;
    return found + (helps ? 0.4 : 0) + against;
}
