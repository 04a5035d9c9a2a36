"""cases.py: the files of the collection (collection.py). Columns are in the order of the file: (header, value of a row)."""
from collection import (any_of, case, constant, count, integer, item, money, nested, per_user, pick, row_code, row_number, serial, unix,
                        user, user_code, visit, when, words)

ISO = "%Y-%m-%d %H:%M:%S"
FRUIT = ("apples", "bread", "butter", "cheese", "coffee", "eggs", "flour", "honey", "jam", "milk", "rice", "tea")
WARE = ("Hammer", "Zange", "Bohrer", "Schraube", "Dübel", "Säge", "Leim", "Pinsel", "Farbe", "Kelle", "Leiter", "Eimer")
STATE = ("opened", "assigned", "waiting", "answered", "reopened", "escalated", "resolved", "closed")
PAGES = ("/", "/about", "/cart", "/checkout", "/help", "/login", "/news", "/pricing", "/search", "/team", "/terms", "/tour")
SONGS = ("Blue Train", "So What", "Naima", "Misty", "Caravan", "Nuages", "Cantaloupe", "Footprints", "Afro Blue", "Solar", "Tune Up",
     "Oleo")
EMAIL = ("ana@x.org", "bo@y.net", "cy@z.com", "di@x.org", "ed@y.net", "flo@z.com", "gus@x.org", "hal@y.net", "ida@z.com", "jo@x.org",
         "kim@y.net", "lea@z.com", "max@x.org", "nia@y.net", "oli@z.com", "pia@x.org", "quin@y.net", "rob@z.com", "sue@x.org", "tom@y.net",
         "uma@z.com", "vic@x.org", "wes@y.net", "xia@z.com")
HOSTS = tuple("10.0.%d.%d" % (i % 5, 20 + i * 3) for i in range(24))
LAND = ("Germany", "France", "Spain", "Italy")

# ---- shops ----
case("uk_retail", [("InvoiceNo", visit("5%05d")), ("StockCode", item("8%04d")), ("Description", pick(*FRUIT)), ("Quantity", count()),
                   ("InvoiceDate", when("%{m}/%{d}/%Y %{H}:%M")), ("UnitPrice", money()), ("CustomerID", user("%d", 12346)),
                   ("Country", per_user(*LAND))], ["CustomerID"], ["InvoiceDate"], ["StockCode", "Description"], tick=60)
case("orders_email", [("Order ID", row_number("#%d", 1001)), ("Customer Email", per_user(*EMAIL)), ("Order Date", when(ISO)),
                      ("Product", pick(*FRUIT)), ("Total", money()), ("Currency", constant("EUR"))],
     ["Customer Email"], ["Order Date"], ["Product"])
case("shopify_like", [("Name", visit("#%d")), ("Email", per_user(*EMAIL)), ("Financial Status", any_of("paid", "paid", "refunded")),
                      ("Paid at", when("%Y-%m-%d %H:%M:%S +0100", 1)), ("Fulfillment Status", constant("fulfilled")),
                      ("Lineitem quantity", count()), ("Lineitem name", pick(*FRUIT)), ("Lineitem sku", item("SKU-%d")),
                      ("Shipping Country", per_user("DE", "FR", "US"))], ["Email"], ["Paid at"], ["Lineitem name", "Lineitem sku"])
case("german_shop", [("Bestellnummer", row_number("B%06d", 700)), ("Kundennummer", user("K%d")), ("Bestelldatum", when("%d.%m.%Y %H:%M")),
                     ("Artikel", pick(*WARE)), ("Menge", count()), ("Preis", money(comma=True))],
     ["Kundennummer"], ["Bestelldatum"], ["Artikel"], delimiter=";", encoding="cp1252", tick=60)
case("french_shop", [("N° commande", row_number("C-%05d")), ("Client", user("CL%04d")), ("Date de commande", when("%d/%m/%Y %H:%M:%S")),
                     ("Article", pick("pain", "beurre", "café", "thé", "œufs", "miel", "riz", "lait")), ("Montant", money(comma=True)),
                     ("Ville", per_user("Orléans", "Nîmes", "Lyon"))],
     ["Client"], ["Date de commande"], ["Article"], delimiter=";", encoding="cp1252")
case("spanish_shop", [("pedido", row_number()), ("cliente", user("%d")), ("fecha", when("%d-%m-%Y")), ("hora", when("%H:%M:%S")),
                      ("producto", pick("pan", "leche", "queso", "azúcar", "piña", "jamón", "uvas", "vino")), ("precio",
                      money(comma=True))],
     ["cliente"], ["fecha,hora", "fecha hora", "fecha"], ["producto"], delimiter=";", encoding="latin-1")
case("polish_shop", [("Klient", user("K-%d")), ("Data zamówienia", when("%Y-%m-%d %H:%M")), ("Produkt", pick("chleb", "mleko", "ser",
                     "masło", "jajka", "miód", "ryż", "kawa")), ("Ilość", count()), ("Cena", money(comma=True))],
     ["Klient"], ["Data zamówienia"], ["Produkt"], delimiter="\t", tick=60)
case("dutch_orders", [("klantnummer", user("%d", 50000)), ("besteldatum", when("%d-%m-%Y %H:%M")), ("productgroep", pick("brood", "kaas",
                      "vis", "vlees", "groente", "fruit", "bier", "wijn")), ("bedrag", money(comma=True)), ("filiaal", any_of("A", "B",
                      "C"))],
     ["klantnummer"], ["besteldatum"], ["productgroep"], delimiter=";", tick=60)
case("cosmetics_clicks", [("event_time", when("%Y-%m-%d %H:%M:%S UTC")), ("event_type", any_of("view", "cart", "purchase")),
                          ("product_id", item("58%05d")), ("category_id", item("14875800%02d")), ("brand", pick("runail", "irisk", "")),
                          ("price", money()), ("user_id", user("%d", 463240011)), ("user_session", visit("s-%d"))],
     ["user_id"], ["event_time"], ["event_type", "product_id", "event_type,product_id"], kind="ambiguous")
case("clickstream_ms", [("timestamp", unix(1000)), ("visitorid", user("%d")), ("event", any_of("view", "view", "addtocart", "transaction")),
                        ("itemid", item("%d")), ("transactionid", any_of("", "", "", "77"))],
     ["visitorid"], ["timestamp"], ["event", "itemid"], kind="ambiguous", mean=5400)
case("grocery_basket", [("household_key", user("%d", 1)), ("BASKET_ID", visit("269%d")), ("PRODUCT_ID", item("8%04d")),
                        ("QUANTITY", count()), ("SALES_VALUE", money()), ("PURCHASE_TS", unix())],
     ["household_key"], ["PURCHASE_TS"], ["PRODUCT_ID"])
case("pos_excel_serial", [("Kassenbon", row_number("%d", 90000)), ("Kundenkarte", user("%d", 770000)), ("Zeitpunkt", serial()),
                          ("Warengruppe", pick(*WARE)), ("Betrag", money(comma=True))],
     ["Kundenkarte"], ["Zeitpunkt"], ["Warengruppe"], delimiter=";", tick=60)
case("excel_dates_en", [("customer", user("C%d")), ("purchased", serial(5)), ("sku", item("A-%d")), ("qty", count())],
     ["customer"], ["purchased"], ["sku"], tick=60)
case("pandas_float_ids", [("", row_number("%d", 0)), ("Customer ID", user("%d.0", 17850)), ("Invoice Date", when(ISO)),
                          ("Product Name", pick(*FRUIT)), ("Sales", money())], ["Customer ID"], ["Invoice Date"], ["Product Name"])
case("totals_row", [("Customer", user("C-%d")), ("Date", when(ISO)), ("Item", pick(*FRUIT)), ("Amount", money())],
     ["Customer"], ["Date"], ["Item"], after=["Total,,,48211.90"])
case("report_preamble", [("Member", user("M%05d")), ("Visit time", when("%Y-%m-%d %H:%M")), ("Treatment", pick("sauna", "massage", "pool",
                         "gym", "yoga", "bar"))], ["Member"], ["Visit time"], ["Treatment"],
     before=["Visits by member", "Generated on 2024-05-01 by ReportBuilder 4.2", ""], tick=60)
case("bank_statement", [("Buchungstag", when("%d.%m.%y")), ("Kontonummer", user("DE%08d", 30000000)), ("Verwendungszweck", words),
                        ("Kategorie", pick("Miete", "Strom", "Essen", "Gehalt", "Bahn", "Kino", "Arzt")), ("Betrag", money(comma=True)),
                        ("Währung", constant("EUR"))], ["Kontonummer"], ["Buchungstag"], ["Kategorie"],
     delimiter=";", encoding="cp1252", tick=86400, mean=20000, before=["Umsätze;;;;;", "Zeitraum: 2024;;;;;"])
case("bank_tx_us", [("Account Number", user("%d", 400100)), ("Posted Date", when("%m/%d/%Y %I:%M %p")), ("Transaction Type",
                    pick("DEBIT", "CREDIT", "ATM", "FEE", "CHECK", "TRANSFER")), ("Amount", money()), ("Balance", money(100, 9000)),
                    ("Reference", row_code(10))], ["Account Number"], ["Posted Date"], ["Transaction Type"], tick=60)
case("czech_bank", [("trans_id", row_number("%d", 695247)), ("account_id", user("%d", 2)), ("date", when("%y%m%d")), ("type",
                    pick("PRIJEM", "VYDAJ", "VYBER")), ("operation", pick("VKLAD", "PREVOD", "VYBER KARTOU", "VYBER")), ("amount", money()),
                    ("balance", money(1000, 9000))], ["account_id"], ["date"], ["type", "operation", "type,operation"], kind="ambiguous",
     delimiter=";", tick=86400, start="1995-03-01 00:00:00", mean=40000)
case("wallet_json", [("txn", row_code()), ("wallet", user_code()), ("occurredAt", when("%Y-%m-%dT%H:%M:%S.%{ms}Z")),
                     ("merchant", pick("Lidl", "Rewe", "Shell", "Ikea", "Zara", "Bahn", "Kino")), ("amountCents", count(100, 9000))],
     ["wallet"], ["occurredAt"], ["merchant"], form="json")

# ---- tickets and processes ----
case("tickets_us", [("Ticket ID", visit("T-%d")), ("Requester", per_user(*EMAIL)), ("Status", pick(*STATE)), ("Changed At",
                    when("%{m}/%{d}/%y %{I}:%M %p")), ("Agent", any_of("Ann", "Bob", "Cem")), ("Comment", words)],
     ["Ticket ID", "Requester"], ["Changed At"], ["Status"], kind="ambiguous", tick=60)
case("tickets_dmy", [("Ticket ID", user("T-%d")), ("Changed At", when("%d/%m/%Y %H:%M")), ("Status", pick(*STATE)), ("Agent",
                     any_of("Ann", "Bob", "Cem", "Dee")), ("Note", words)], ["Ticket ID"], ["Changed At"], ["Status"], tick=60)
case("helpdesk_log", [("Case ID", user("Case %d", 1, 1)), ("Activity", pick(*STATE)), ("Resource", any_of("Value 1", "Value 2")),
                      ("Complete Timestamp", when("%Y/%m/%d %H:%M:%S.000")), ("Variant", per_user("V1", "V2", "V3"))],
     ["Case ID"], ["Complete Timestamp"], ["Activity"])
case("xes_csv", [("case:concept:name", user("%d", 173688)), ("concept:name", pick("A_SUBMITTED", "A_ACCEPTED", "O_SENT", "W_Call",
     "O_BACK")),
                 ("time:timestamp", when("%Y-%m-%dT%H:%M:%S.%{ms}+02:00", 2)), ("lifecycle:transition", any_of("START", "COMPLETE")),
                 ("org:resource", any_of("10910", "11180", ""))], ["case:concept:name"], ["time:timestamp"], ["concept:name"])
case("jira_changes", [("Issue key", user("OPS-%d", 1, 1)), ("Field", any_of("status", "status", "assignee")), ("To", pick("Open",
     "In Progress",
                      "Review", "Done", "Blocked")), ("Changed", when("%d/%b/%y %{I}:%M %p")), ("Author", any_of("ann", "bob", "cem",
                      "dee"))],
     ["Issue key"], ["Changed"], ["To", "Field,To"], tick=60)
case("incident_nl", [("Incident ID", user("IM%07d")), ("DateStamp", when("%d-%m-%Y %H:%M:%S")), ("IncidentActivity_Number",
     row_number("001A%07d")),
                     ("IncidentActivity_Type", pick("Reassignment", "Update", "Closed", "Open", "Caused By", "Status Change")),
                     ("Assignment Group", any_of("TEAM0001", "TEAM0002", "TEAM0003")), ("KM number", per_user("KM1", "KM2"))],
     ["Incident ID"], ["DateStamp"], ["IncidentActivity_Type"], delimiter=";")
case("permit_two_times", [("dossier", user("D%d")), ("stap", pick("aanvraag", "toets", "besluit", "bezwaar", "archief")),
                          ("event_time", when("%Y-%m-%dT%H:%M:%S")), ("processed_at", lambda r, rng: when("%Y-%m-%dT%H:%M:%S")(
                              dict(r, t=r["t"] + 3600 + int(9000 * rng.random())), rng))],
     ["dossier"], ["event_time"], ["stap"])
case("github_events", [("id", row_number("%d", 2489651045)), ("type", pick("PushEvent", "IssuesEvent", "ForkEvent", "WatchEvent",
     "CreateEvent")),
                       ("actor", nested(id=user("%d"), login=user("dev%d"))), ("repo", nested(id=item("%d"), name=item("org/repo%d"))),
                       ("created_at", when("%Y-%m-%dT%H:%M:%SZ")), ("public", lambda r, rng: True)],
     ["actor.login", "actor.id"], ["created_at"], ["type", "repo.name"], form="jsonl")
case("mail_log", [("Message-ID", row_code(20)), ("From", per_user(*EMAIL)), ("Date", when("%a, %d %b %Y %H:%M:%S +0100", 1)), ("Folder",
                  pick("inbox", "sent", "deleted", "drafts", "archive")), ("Size", count(300, 9000))], ["From"], ["Date"], ["Folder"])

# ---- logs ----
case("apache_table", [("host", per_user(*HOSTS)), ("time", when("[%d/%b/%Y:%H:%M:%S +0100]", 1)), ("request", pick(*PAGES)),
                      ("status", any_of("200", "200", "404", "500")), ("bytes", count(100, 9000))], ["host"], ["time"], ["request"])
case("apache_kaggle", [("IP", per_user(*HOSTS)), ("Time", when("[%d/%b/%Y:%H:%M:%S")), ("URL",
     pick(*["GET %s HTTP/1.1" % p for p in PAGES])),
                       ("Staus", any_of("200", "200", "302", "304"))], ["IP"], ["Time"], ["URL"])
case("web_session_json", [("domain_userid", user_code()), ("domain_sessionid", visit("sess%d")), ("page_urlpath", pick(*PAGES)),
                          ("collector_tstamp", when("%Y-%m-%d %H:%M:%S.%{ms}")), ("event_id", row_code()), ("event_name",
                          constant("page_view")),
                          ("br_lang", per_user("de", "en", "fr"))], ["domain_userid"], ["collector_tstamp"], ["page_urlpath"], form="jsonl")
case("ga_events", [("user_pseudo_id", user("%d.167", 1027)), ("event_timestamp", integer(1000000)), ("event_name", pick("page_view",
     "scroll",
                   "click", "session_start", "first_visit", "purchase")), ("platform", constant("WEB")), ("geo",
                   nested(country=per_user(*LAND)))],
     ["user_pseudo_id"], ["event_timestamp"], ["event_name"], form="jsonl")
case("machine_errors", [("datetime", when("%Y-%m-%d %H:00:00")), ("machineID", user("%d", 1, 1)), ("errorID", pick("error1", "error2",
     "error3",
                        "error4", "error5"))], ["machineID"], ["datetime"], ["errorID"], tick=3600)
case("machine_ts_ms", [("ts_ms", unix(1000)), ("machine", user("press-%d", 1, 1)), ("state", pick("run", "idle", "setup", "fault", "stop")),
                       ("temp", money(20, 90)), ("vibration", money(0, 3))], ["machine"], ["ts_ms"], ["state"])
case("iot_nested", [("deviceId", user("dev-%d")), ("payload", nested(kind=pick("boot", "report", "alarm", "sleep", "update"),
     value=money())),
                    ("meta", nested(receivedAt=integer(1000), fw=any_of("1.2", "1.3")))], ["deviceId"], ["meta.receivedAt"],
                    ["payload.kind"],
     form="jsonl")
case("syslog_like", [("Timestamp", when("%b %{d} %Y %H:%M:%S")), ("Node", user("node%03d", 1, 1)), ("Component", pick("kernel", "sshd",
     "cron",
                     "systemd", "dhclient", "ntpd")), ("Level", any_of("INFO", "WARN", "ERROR")), ("Content", words)],
     ["Node"], ["Timestamp"], ["Component"])
case("plc_french", [("Horodatage", when("%d/%m/%Y %H:%M:%S")), ("Automate", user("API-%d", 1, 1)), ("Alarme", pick("surchauffe", "arrêt",
     "pression",
                    "niveau", "porte", "débit")), ("Durée", money(comma=True))], ["Automate"], ["Horodatage"], ["Alarme"], delimiter=";",
     encoding="utf-16")
case("car_sharing", [("vehicle", user("B-XY %d")), ("start_datetime", when("%Y-%m-%dT%H:%M:%S+01:00", 1)), ("end_datetime", lambda r,
     rng: when(
    "%Y-%m-%dT%H:%M:%S+01:00", 1)(dict(r, t=r["t"] + 600 + int(3000 * rng.random())), rng)), ("station", pick("Zoo", "Dom", "Hafen",
    "Markt",
                                                                                                   "Park", "Uni"))],
     ["vehicle"], ["start_datetime"], ["station"])
case("access_cards", [("Card No", user("%d", 88000)), ("Event Time", when("%d-%b-%Y %H:%M:%S")), ("Door", pick("Main", "Garage", "Lab",
     "Roof",
                      "Server", "Store")), ("Direction", any_of("IN", "OUT"))], ["Card No"], ["Event Time"], ["Door", "Door,Direction"])
case("auth_log_zone", [("username", user("u%d")), ("at", when("%Y-%m-%d %H:%M:%S CET", 1)), ("result", pick("login", "logout", "failure",
                       "locked", "reset")), ("ip", any_of(*HOSTS))], ["username"], ["at"], ["result"])
case("k8s_events", [("lastTimestamp", when("%Y-%m-%dT%H:%M:%SZ")), ("reason", pick("Pulled", "Created", "Started", "Killing", "BackOff",
                    "Unhealthy")), ("involvedObject", nested(kind=constant("Pod"), name=user("pod-%d"))), ("message", words)],
     ["involvedObject.name"], ["lastTimestamp"], ["reason"], form="pretty")
case("epoch_decimal_ms", [("device", user("d%d")), ("epoch_ms", unix(1000, 3)), ("signal", pick("up", "down", "sync", "loss", "low"))],
     ["device"], ["epoch_ms"], ["signal"])
case("epoch_us_pipe", [("probe", user("p%d")), ("stamp", unix(1000000)), ("code", pick("A1", "A2", "B1", "B2", "C1", "C2")), ("value",
     money())],
     ["probe"], ["stamp"], ["code"], delimiter="|")
case("epoch_ns", [("host", user("web%d", 1, 1)), ("ts", integer(1000000000)), ("endpoint", pick(*PAGES)), ("latency", money())],
     ["host"], ["ts"], ["endpoint"], form="jsonl")
case("quoted_breaks", [("User", user("u%d")), ("Created", when(ISO)), ("Text", lambda r, rng: words(r, rng) + "\n" + words(r, rng)),
                       ("Channel", pick("mail", "phone", "chat", "shop", "fax"))], ["User"], ["Created"], ["Channel"], quote=True,
                       eol="\r\n")

# ---- media, games, learning ----
case("lastfm", [("userid", user("user_%06d", 1, 1)), ("timestamp", when("%Y-%m-%dT%H:%M:%SZ")), ("artist_id", item("a%08d")),
     ("artist_name",
                pick("Coltrane", "Davis", "Monk", "Evans", "Hancock", "Shorter", "Mingus", "Rollins", "Getz", "Baker", "Blakey", "Silver")),
                ("track_id", item("t%08d")), ("track_name", pick(*SONGS))], ["userid"], ["timestamp"],
     ["track_name", "track_id", "artist_name", "artist_id"], delimiter="\t")
case("songs_app", [("listened_at", unix()), ("listener", user("l%d")), ("song_title", pick(*SONGS)), ("length", count(90, 400))],
     ["listener"], ["listened_at"], ["song_title"])
case("streaming_history", [("ts", when("%Y-%m-%dT%H:%M:%SZ")), ("username", user("me%d")), ("platform", per_user("android", "web", "ios")),
                           ("ms_played", count(1000, 90000)), ("master_metadata_track_name", pick(*SONGS)), ("reason_start",
                            any_of("trackdone", "fwdbtn", "clickrow")), ("shuffle", lambda r, rng: False)],
     ["username"], ["ts"], ["master_metadata_track_name"], form="json")
case("listens_constant", [("event", constant("play")), ("user_name", user("u%d")), ("listened_at", integer()), ("item",
     nested(id=item("i%d"),
                          title=pick(*SONGS)))], ["user_name"], ["listened_at"], ["item.id", "item.title"], form="jsonl")
case("movielens_dat", [("user", user("%d", 1, 1)), ("movie", item("%d")), ("rating", any_of("3", "4", "5")), ("ts", unix())],
     ["1"], ["4"], ["2"], kind="ambiguous", header=False, delimiter=",")
case("ratings_csv", [("userId", user("%d", 1, 1)), ("movieId", item("%d")), ("rating", any_of("3.0", "4.5", "5.0")), ("timestamp", unix())],
     ["userId"], ["timestamp"], ["movieId"])
case("books_reviews", [("reviewerID", user("A%dXQ")), ("asin", item("B000%05d")), ("overall", any_of("3.0", "4.0", "5.0")), ("reviewText",
     words),
                       ("reviewTime", when("%m %{d}, %Y")), ("unixReviewTime", integer())], ["reviewerID"], ["unixReviewTime"], ["asin"],
     form="jsonl", tick=86400, mean=40000)
case("chess_games", [("player", user("gm%d")), ("opening", pick("C20", "B01", "D10", "A45", "E60", "C42")), ("utc_date", when("%Y.%m.%d")),
                     ("utc_time", when("%H:%M:%S")), ("result", any_of("1-0", "0-1", "1/2")), ("elo", count(1500, 2500))],
     ["player"], ["utc_date,utc_time", "utc_date utc_time", "utc_date"], ["opening"])
case("game_telemetry", [("playerGuid", user_code(20)), ("eventName", pick("spawn", "kill", "death", "loot", "levelup", "quit")),
                        ("clientTime", when("%Y-%m-%dT%H:%M:%S.%{ms}Z")), ("map", any_of("dust", "mill", "port")), ("level", count(1, 40))],
     ["playerGuid"], ["clientTime"], ["eventName"], zip=True)
case("game_purchases_ru", [("игрок", user("p%d")), ("время", when("%d.%m.%Y %H:%M:%S")), ("предмет", pick("меч", "щит", "лук", "зелье",
     "шлем",
                           "кольцо")), ("цена", money())], ["игрок"], ["время"], ["предмет"])
case("duolingo_like", [("p_recall", money(0, 1)), ("timestamp", unix()), ("delta", count(10, 9999)), ("user_id", user("u:%d")),
                       ("learning_language", per_user("de", "fr", "es")), ("lexeme_id", item("%08d")), ("history_seen", count(1, 20))],
     ["user_id"], ["timestamp"], ["lexeme_id"])
case("mooc_actions", [("ACTIONID", row_number("%d", 0)), ("USERID", user("%d", 0, 1)), ("TARGETID", item("%d", 0, 1)), ("TIMESTAMP",
                      lambda r, rng: "%.1f" % (r["t"] - 1704269700))], ["USERID"], ["TIMESTAMP"], ["TARGETID"], delimiter="\t",
     shift=1704269700)
case("moodle_log", [("Time", when("%{d}/%m/%y, %H:%M:%S")), ("User full name", user("Student %d", 1, 1)), ("Affected user", constant("-")),
                    ("Event context", any_of("Course: Algebra", "Forum: News", "Quiz: Week 1")), ("Component", pick("System", "Forum",
                    "Quiz", "File")),
                    ("Event name", pick("Course viewed", "Quiz started", "Post created", "File viewed", "Quiz submitted", "User graded",
                     "Discussion viewed")), ("Origin", constant("web")), ("IP address", any_of(*HOSTS))],
     ["User full name"], ["Time"], ["Event name"])
case("learning_assist", [("order_id", row_number("%d", 21000000)), ("user_id", user("%d", 60000)), ("skill_name", pick("Addition", "Area",
                         "Median", "Percent", "Angles", "Ratio")), ("correct", any_of("0", "1")), ("start_time",
                         when("%Y-%m-%d %H:%M:%S.%f")),
                         ("end_time", lambda r, rng: when("%Y-%m-%d %H:%M:%S.%f")(dict(r, t=r["t"] + 20 + int(90 * rng.random())), rng))],
     ["user_id"], ["start_time"], ["skill_name"], encoding="latin-1")
case("library_loans_jp", [("利用者番号", user("R%d")), ("貸出日時", when("%Y/%m/%d %H:%M")), ("書名", pick("坊っちゃん", "こころ", "雪国", "羅生門", "舞姫",
                          "山月記", "檸檬"))], ["利用者番号"], ["貸出日時"], ["書名"], tick=60)
case("tv_apps_zh", [("用户编号", user("U%d")), ("观看时间", when("%Y年%m月%d日 %H:%M:%S")), ("节目", pick("新闻", "体育", "电影", "音乐", "少儿", "财经"))],
     ["用户编号"], ["观看时间"], ["节目"])

# ---- health, people, travel ----
case("admissions", [("row_id", row_number()), ("subject_id", user("%d", 10006)), ("hadm_id", visit("1%d")), ("charttime", when(ISO)),
                    ("itemid", item("22%04d")), ("valuenum", money(0, 200)), ("valueuom", pick("mmHg", "bpm", "%"))],
     ["subject_id"], ["charttime"], ["itemid"])
case("clinic_visits", [("Patient_ID", user("P%05d")), ("Birthdate", per_user("1950-02-03", "1961-05-06", "1972-07-28", "1980-09-10",
     "1999-12-24")),
                       ("Visit_Date", when("%Y-%m-%d")), ("ICD10", pick("I10", "E11", "J45", "M54", "F32", "K21")), ("Physician",
                        any_of("Dr. A", "Dr. B", "Dr. C"))], ["Patient_ID"], ["Visit_Date"], ["ICD10"], tick=86400, mean=40000)
case("prescriptions_de", [("Versichertennr", user("V%d")), ("Abgabedatum", when("%d.%m.%Y")), ("Wirkstoff", pick("Ibuprofen", "Ramipril",
                          "Metformin", "Simvastatin", "Pantoprazol")), ("Packungen", count())], ["Versichertennr"], ["Abgabedatum"],
                          ["Wirkstoff"],
     delimiter=";", tick=86400, mean=40000)
case("sepsis_offset", [("Case ID", user("C%d")), ("Activity", pick("ER Triage", "Leucocytes", "CRP", "IV Liquid", "Release A",
                       "LacticAcid")), ("Complete Timestamp", when("%Y/%m/%d %H:%M:%S.000+0100", 1)), ("Age", per_user("45", "60", "85",
                       "30"))],
     ["Case ID"], ["Complete Timestamp"], ["Activity"])
case("hr_changes", [("employee no", user("E-%d")), ("effective", when("%B %{d}, %Y")), ("change", pick("hired", "promoted", "transfer",
     "raise",
                    "leave", "return")), ("department", any_of("IT", "HR", "Sales"))], ["employee no"], ["effective"], ["change"],
                    tick=86400,
     mean=50000)
case("hotel_italian", [("Ospite", user("O%d")), ("Data", when("%d/%m/%Y")), ("Ora", when("%H.%M")), ("Servizio", pick("bar", "spa",
     "cena", "pranzo",
                       "lavanderia", "parcheggio")), ("Importo", money(comma=True))], ["Ospite"], ["Data,Ora", "Data Ora", "Data"],
     ["Servizio"], delimiter=";", encoding="utf-8-sig", tick=60)
case("bike_trips", [("ride_id", row_code()), ("started_at", when(ISO)), ("ended_at", lambda r, rng: when(ISO)(dict(r, t=r["t"] + 300 + int(
    2000 * rng.random())), rng)), ("start_station_name", pick("Zoo", "Dom", "Hafen", "Markt", "Park", "Uni", "Rathaus")), ("member_no",
                                                                                                                   user("%d", 3300))],
     ["member_no"], ["started_at"], ["start_station_name"])
case("checkins", [("user", user("%d", 0, 1)), ("check-in time", when("%Y-%m-%dT%H:%M:%SZ")), ("latitude", money(30, 60)), ("longitude",
                  money(0, 90)), ("location id", item("%d", 22847))], ["user"], ["check-in time"], ["location id"], delimiter="\t",
                  order="latest")
case("foursquare", [("userId", user("%d")), ("venueId", item("4bf58dd8d%05d")), ("venueCategory", pick("Bar", "Gym", "Office", "Park",
     "Cafe",
                    "Home")), ("timezoneOffset", constant("-240")), ("utcTimestamp", when("%a %b %d %H:%M:%S +0000 %Y"))],
     ["userId"], ["utcTimestamp"], ["venueId", "venueCategory"])
case("ais_ports", [("MMSI", user("2110%05d")), ("# Timestamp", when("%d/%m/%Y %H:%M:%S")), ("Navigational status", pick("Under way",
     "Moored",
                   "Anchored", "Fishing", "Aground")), ("SOG", money(0, 20)), ("COG", money(0, 360))], ["MMSI"], ["# Timestamp"],
     ["Navigational status"])
case("weather_calls", [("caller", user("+4930%06d", 55000)), ("call_date", when("%d %b %Y")), ("call_time", when("%I:%M:%S %p")), ("line",
                       pick("north", "south", "east", "west", "sea"))], ["caller"], ["call_date,call_time", "call_date call_time",
                       "call_date"],
     ["line"])
case("german_months", [("Mitglied", user("M-%d")), ("Eintrag vom", when("%{d}. %{de} %Y")), ("Kurs", pick("Yoga", "Boxen", "Tanz", "Judo",
                       "Schach"))], ["Mitglied"], ["Eintrag vom"], ["Kurs"], tick=86400, mean=50000)
case("portuguese_app", [("usuário", user("u%d")), ("data_hora", when("%d/%m/%Y %H:%M:%S")), ("ação", pick("entrar", "sair", "comprar",
     "buscar",
                        "avaliar")), ("dispositivo", per_user("celular", "tablet"))], ["usuário"], ["data_hora"], ["ação"], delimiter=";",
     encoding="latin-1")
case("turkish_app", [("kullanıcı", user("k%d")), ("tarih", when("%d.%m.%Y %H:%M")), ("işlem", pick("giriş", "çıkış", "ödeme", "arama",
     "iade"))],
     ["kullanıcı"], ["tarih"], ["işlem"], delimiter=";", tick=60)
case("swedish_loggar", [("anvandare", user("a%d")), ("tidpunkt", when("%Y-%m-%d %H:%M:%S")), ("handelse", pick("start", "paus", "klar",
     "fel",
                        "avbrott"))], ["anvandare"], ["tidpunkt"], ["handelse"], delimiter="|")

# ---- apps ----
case("mixpanel", [("event", pick("App Open", "Search", "Share", "Upgrade", "Invite", "Close")), ("properties", nested(
    time=integer(), distinct_id=user_code(), city=per_user("Rome", "Oslo")))], ["properties.distinct_id"], ["properties.time"], ["event"],
     form="jsonl")
case("amplitude", [("$insert_id", row_code()), ("user_id", user("%d")), ("event_type", pick("open", "tap", "swipe", "buy", "close")),
                   ("event_time", when("%Y-%m-%d %H:%M:%S.%f")), ("server_upload_time", lambda r, rng: when("%Y-%m-%d %H:%M:%S.%f")(
                       dict(r, t=r["t"] + int(200 * rng.random())), rng)), ("country", per_user(*LAND)), ("uuid", row_code(20))],
     ["user_id"], ["event_time"], ["event_type"], form="jsonl")
case("segment_wrap", [("anonymousId", user_code()), ("type", constant("track")), ("event", pick("Viewed", "Added", "Bought", "Left",
     "Rated")),
                      ("timestamp", when("%Y-%m-%dT%H:%M:%S.%{ms}Z")), ("messageId", row_code(20)), ("receivedAt", lambda r, rng: when(
                          "%Y-%m-%dT%H:%M:%S.%{ms}Z")(dict(r, t=r["t"] + 1 + int(30 * rng.random())), rng))],
     ["anonymousId"], ["timestamp"], ["event"], form="json", wrap="data")
case("crash_reports", [("Report", row_number("CR%06d")), ("Install ID", user_code(16)), ("Occurred (UTC)", when("%Y-%m-%d %H:%M:%S")),
     ("Exception",
                       pick("NullPointer", "OutOfMemory", "Timeout", "IO", "Security")), ("App Version", any_of("1.0", "1.1", "2.0"))],
     ["Install ID"], ["Occurred (UTC)"], ["Exception"])
case("chat_commands", [("chat", user("c%d")), ("sent", when("%d.%m.%y, %H:%M")), ("command", pick("/start", "/help", "/stop", "/buy",
     "/list",
                       "/info"))], ["chat"], ["sent"], ["command"], quote=True, tick=60)
case("utf16_tab", [("Member ID", user("%d", 7000)), ("Timestamp", when("%m/%d/%Y %{I}:%M:%S %p")), ("Activity", pick("Login", "Search",
     "Café",
                   "Export", "Logout"))], ["Member ID"], ["Timestamp"], ["Activity"], delimiter="\t", encoding="utf-16")
case("newsletter", [("subscriber", per_user(*EMAIL)), ("campaign", item("N%d")), ("action", pick("sent", "opened", "clicked", "bounced",
                    "unsubscribed")), ("action_at", when("%Y-%m-%dT%H:%MZ"))], ["subscriber"], ["action_at"], ["action"], tick=60)
case("relative_hours", [("run", user("run%d", 1, 1)), ("elapsed", lambda r, rng: "%.4f" % ((r["t"] - 1704269700) / 3600)), ("step",
                        pick("load", "heat", "mix", "cool", "empty"))], ["run"], ["elapsed"], ["step"], kind="ambiguous", any_times=True)
case("small_integers", [("patient", user("p%d")), ("day", lambda r, rng: "%d" % ((r["t"] - 1704269700) // 86400)), ("finding", pick("fever",
                        "cough", "rash", "pain"))], ["patient"], ["day"], ["finding"], kind="ambiguous", any_times=True, mean=20000)
case("dates_uncertain", [("client", user("c%d")), ("visited", lambda r, rng: "%02d/%02d/2024" % (1 + r["i"] % 12, 1 + r["i"] // 40)),
     ("service",
                         pick("cut", "wash", "color", "perm"))], ["client"], ["visited"], ["service"], kind="ambiguous", any_times=True)
case("two_events", [("customer", user("c%d")), ("time", when(ISO)), ("channel", any_of("web", "store", "phone")), ("product",
     pick(*FRUIT))],
     ["customer"], ["time"], ["product", "channel,product"], kind="ambiguous")
case("two_users", [("sender", user("a%d")), ("receiver", lambda r, rng: "b%d" % int(24 * rng.random())), ("time", when(ISO)), ("kind",
                   pick("text", "call", "photo", "video"))], ["sender", "receiver"], ["time"], ["kind"], kind="ambiguous")
case("headerless_iso", [("a", user("u%d")), ("b", when(ISO)), ("c", pick(*FRUIT))], ["1"], ["2"], ["3"], kind="ambiguous", header=False)
case("headerless_gowalla", [("a", user("%d", 0, 1)), ("b", when("%Y-%m-%dT%H:%M:%SZ")), ("c", money(30, 60)), ("d", money(0, 90)),
                            ("e", item("%d", 22847))], ["1"], ["2"], ["5"], kind="ambiguous", header=False, delimiter="\t", order="latest")
case("single_user", [("listened", when(ISO)), ("artist", pick(*SONGS)), ("seconds", count(30, 400))], ["none"], ["listened"], ["artist"],
     kind="ambiguous")
case("ids_only", [("a", item("%d")), ("b", user("%d", 7000)), ("ts", unix())], ["b", "a"], ["ts"], ["a", "b"], kind="ambiguous")
case("no_time", [("user", user("u%d")), ("item", pick(*FRUIT)), ("price", money())], [], [], [], kind="hopeless")
case("no_repeat", [("order", row_number("o%d")), ("text", words), ("price", money())], [], [], [], kind="hopeless")
case("prices_wide", [("date", when("%Y-%m-%d")), ("open", money()), ("close", money()), ("high", money()), ("low", money())], [], [], [],
     kind="hopeless", tick=86400, mean=90000)
case("birthdays", [("name", row_number("Person %d")), ("born", when("%Y-%m-%d")), ("city", any_of("Rome", "Oslo", "Bern"))], [], [], [],
     kind="hopeless", tick=86400, mean=900000, start="1950-01-01 00:00:00")


def later(*arguments, **shape):
    """A case that was made after the others, once as files that nobody had seen."""
    case(*arguments, half="dev", **shape)


later("instacart", [("order_id", visit("%d")), ("product_id", item("%d")), ("add_to_cart_order", count()), ("reordered", any_of("0",
      "1")), ("user_id", user("%d", 1, 1)), ("order_ts", when(ISO))], ["user_id"], ["order_ts"], ["product_id"])
later("telco", [("MSISDN", user("4917%07d", 200000)), ("CALL_START", when("%Y%m%d%H%M%S")), ("CALL_TYPE", pick("voice", "sms", "data",
      "roam")), ("DURATION", count(1, 900)), ("CELL_ID", any_of("c1", "c2", "c3", "c4"))], ["MSISDN"], ["CALL_START"], ["CALL_TYPE"],
      delimiter="|")
later("ubuntu_irc", [("nick", user("nick%d", 1, 1)), ("when", when("%Y-%m-%dT%H:%M")), ("verb", pick("join", "part", "quit", "msg",
      "kick"))], ["nick"], ["when"], ["verb"], delimiter="\t", tick=60)
later("crm_de", [("Kontakt-Nr.", user("%d", 88)), ("Vorgang", pick("Anruf", "E-Mail", "Termin", "Angebot", "Auftrag")), ("Datum",
      when("%d.%m.%Y")), ("Uhrzeit", when("%H:%M")), ("Bearbeiter", any_of("ab", "cd", "ef")), ("Notiz", words)], ["Kontakt-Nr."],
      ["Datum,Uhrzeit"], ["Vorgang"], delimiter=";", encoding="cp1252", tick=60)
later("brazil_orders", [("id_pedido", row_number("P%05d")), ("id_cliente", user_code(10)), ("data_compra", when("%d/%m/%Y %H:%M")),
      ("categoria_produto", pick("livros", "beleza", "casa", "jogos", "moda")), ("valor_total", money(comma=True)), ("uf", per_user("SP",
      "RJ", "MG"))], ["id_cliente"], ["data_compra"], ["categoria_produto"], delimiter=";", tick=60)
later("strava", [("Activity ID", row_number("%d", 9000)), ("Activity Date", when("%b %{d}, %Y, %{I}:%M:%S %p")), ("Athlete",
      user("ath%d")), ("Activity Type", pick("Run", "Ride", "Swim", "Hike", "Row")), ("Distance", money())], ["Athlete"],
      ["Activity Date"], ["Activity Type"])
later("steam", [("steamid", user("7656119%08d")), ("game", pick("Dota", "Rust", "Portal", "Doom", "Braid")), ("behavior",
      constant("play")), ("hours", money()), ("played_at", unix())], ["steamid"], ["played_at"], ["game"])
later("zendesk", [("id", row_number()), ("ticket_id", user("%d", 5000)), ("created_at", when("%Y-%m-%dT%H:%M:%SZ")), ("author_id",
      any_of("1", "2", "3", "4", "5")), ("event_type", pick("Create", "Comment", "Change", "Tag", "Solve")), ("via", any_of("web",
      "mail"))], ["ticket_id"], ["created_at"], ["event_type"], form="json", wrap="audits")
later("emr", [("pat_enc_csn", visit("%d")), ("mrn", user("MRN%05d")), ("result_time", when("%m/%d/%Y %H:%M")), ("lab_name", pick("HGB",
      "WBC", "NA", "K", "GLU", "CRP")), ("value", money()), ("units", per_user("g/dl", "mmol"))], ["mrn"], ["result_time"], ["lab_name"],
      tick=60)
later("parking", [("Kennzeichen", user("M-AB %d")), ("Einfahrt", when("%d.%m.%Y %H:%M:%S")), ("Ausfahrt", lambda r,
      rng: when("%d.%m.%Y %H:%M:%S")(dict(r, t=r["t"]+900+int(9000*rng.random())), rng)), ("Parkhaus", pick("Nord", "Sued", "Ost", "West",
      "Mitte"))], ["Kennzeichen"], ["Einfahrt"], ["Parkhaus"], delimiter=";")
later("gps_events", [("IMEI", user("35%013d", 10**9)), ("UTC", when("%d%m%y %H%M%S")), ("Event", pick("ign_on", "ign_off", "harsh",
      "idle", "geo")), ("Lat", money(40, 60)), ("Lon", money(0, 20))], ["IMEI"], ["UTC"], ["Event"], kind="ambiguous")
later("finnish", [("asiakas", user("A%d")), ("pvm", when("%{d}.%{m}.%Y")), ("tuote", pick("maito", "leipä", "kahvi", "juusto", "voi")),
      ("hinta", money(comma=True))], ["asiakas"], ["pvm"], ["tuote"], delimiter=";", tick=86400, mean=30000)
later("ci_builds", [("repo", pick("a/b", "c/d", "e/f", "g/h")), ("build_number", row_number()), ("pipeline", user("pipe-%d")),
      ("finished", when("%Y-%m-%dT%H:%M:%S+00:00")), ("result", pick("passed", "failed", "errored", "canceled"))], ["pipeline", "repo"],
      ["finished"], ["result"], kind="ambiguous", form="jsonl")
later("library_us", [("PatronID", user("%d", 21000)), ("CheckoutDateTime", when("%m/%d/%Y %I:%M:%S %p")), ("ItemBarcode", row_code(14)),
      ("Collection", pick("fic", "mys", "dvd", "cd", "kid", "bio"))], ["PatronID"], ["CheckoutDateTime"], ["Collection"])
later("korean", [("회원번호", user("M%d")), ("구매일시", when("%Y-%m-%d %H:%M")), ("상품명", pick("우유", "빵", "커피", "치즈", "계란"))], ["회원번호"], ["구매일시"],
      ["상품명"], tick=60)
later("wiki_edits", [("rev_id", row_number("%d", 900)), ("page_title", pick("Zoo", "Jam", "Oak", "Sun", "Fox")), ("editor", user("Ed%d")),
      ("rev_timestamp", when("%Y%m%d%H%M%S")), ("minor", any_of("0", "1")), ("comment", words)], ["editor"], ["rev_timestamp"],
      ["page_title"])
later("elevators", [("Anlage", user("A-%03d", 1, 1)), ("Störung", pick("Tür", "Motor", "Steuerung", "Licht", "Seil")), ("gemeldet am",
      when("%d.%m.%y %H:%M")), ("behoben am", lambda r, rng: when("%d.%m.%y %H:%M")(dict(r, t=r["t"]+3600+60*int(200*rng.random())),
      rng))], ["Anlage"], ["gemeldet am"], ["Störung"], delimiter=";", encoding="cp1252", tick=60)
later("survey_app", [("Respondent", user("R%d")), ("StartDate", when(ISO)), ("EndDate", lambda r, rng: when(ISO)(dict(r,
      t=r["t"]+60+int(600*rng.random())), rng)), ("RecordedDate", lambda r, rng: when(ISO)(dict(r, t=r["t"]+700), rng)), ("Survey",
      pick("NPS", "CSAT", "Exit", "Onboarding"))], ["Respondent"], ["StartDate"], ["Survey"])
later("crypto", [("hash", row_code(32)), ("from_address", user_code(20)), ("to_address", any_of("0xa", "0xb", "0xc", "0xd", "0xe",
      "0xf")), ("method", pick("swap", "mint", "transfer", "stake", "vote")), ("block_timestamp", unix()), ("gas", count(21000, 90000))],
      ["from_address"], ["block_timestamp"], ["method"])
later("pos_slips", [("store", any_of("S1", "S2", "S3")), ("loyalty_card", user("%d", 99000)), ("slip", visit("%d")), ("ts",
      when("%Y-%m-%d %H:%M:%S")), ("ean", item("40%011d")), ("qty", count()), ("net", money())], ["loyalty_card"], ["ts"], ["ean"])
later("olist", [("customer_unique_id", user_code(32)), ("order_id", row_code(32)), ("order_status", any_of("delivered", "delivered",
      "shipped")), ("order_purchase_timestamp", when(ISO)), ("order_delivered_customer_date", lambda r, rng: when(ISO)(dict(r,
      t=r["t"]+500000), rng)), ("product_category_name", pick("beleza", "moveis", "esporte", "brinquedos", "pet_shop"))],
      ["customer_unique_id"], ["order_purchase_timestamp"], ["product_category_name"])
later("tafeng", [("TRANSACTION_DT", when("%m/%d/%Y")), ("CUSTOMER_ID", user("%08d", 1104905)), ("AGE_GROUP", per_user("25-29", "30-34",
      "65+")), ("PIN_CODE", per_user("115", "221")), ("PRODUCT_SUBCLASS", item("%d", 100101)), ("PRODUCT_ID", item("47%011d")), ("AMOUNT",
      count()), ("SALES_PRICE", count(20, 400))], ["CUSTOMER_ID"], ["TRANSACTION_DT"], ["PRODUCT_ID", "PRODUCT_SUBCLASS"], tick=86400,
      mean=30000)
later("mimic_rx", [("ROW_ID", row_number()), ("SUBJECT_ID", user("%d", 36)), ("HADM_ID", visit("14%d")), ("STARTDATE", when(ISO)),
      ("ENDDATE", lambda r, rng: when(ISO)(dict(r, t=r["t"]+200000), rng)), ("DRUG", pick("Heparin", "Insulin", "Furosemide", "Aspirin",
      "Potassium Chloride")), ("DOSE_VAL_RX", count())], ["SUBJECT_ID"], ["STARTDATE"], ["DRUG"])
later("rossmann_bons", [("Filiale", any_of("F1", "F2", "F3")), ("Bon-Nr", row_number()), ("Kundenkarten-ID", user("KK%d")), ("Bon-Datum",
      when("%d.%m.%Y")), ("Bon-Zeit", when("%H:%M:%S")), ("Artikelbezeichnung", pick("Seife", "Creme", "Windeln", "Tee", "Zahnpasta")),
      ("Umsatz", money(comma=True))], ["Kundenkarten-ID"], ["Bon-Datum,Bon-Zeit"], ["Artikelbezeichnung"], delimiter=";", encoding="cp1252")
later("windows_events", [("Level", any_of("Information", "Warning", "Error")), ("Date and Time", when("%{m}/%{d}/%Y %{I}:%M:%S %p")),
      ("Source", pick("DNS", "Kernel", "Disk", "Update", "Print")), ("Event ID", item("%d")), ("Computer", user("PC-%d"))], ["Computer"],
      ["Date and Time"], ["Source", "Event ID"])
later("airtable", [("Name", user("Lead %d")), ("Stage", pick("New", "Contacted", "Demo", "Won", "Lost")), ("Moved on",
      when("%{m}/%{d}/%Y %{I}:%M%p")), ("Owner", any_of("Ann", "Bea", "Cy"))], ["Name"], ["Moved on"], ["Stage"], tick=60)
later("scooter", [("scooter_id", user("SC%05d")), ("ts_utc", when("%Y-%m-%dT%H:%M:%SZ")), ("state_to", pick("available", "reserved",
      "riding", "charging", "lost")), ("battery", count(0, 100)), ("lat", money(48, 49))], ["scooter_id"], ["ts_utc"], ["state_to"])
later("netflix", [("Profile Name", user("P%d")), ("Start Time", when(ISO)), ("Duration", any_of("00:21:10", "01:02:11", "00:44:00")),
      ("Title", pick("Dark", "Lupin", "Ozark", "Narcos", "Elite")), ("Device Type", per_user("TV", "Phone")), ("Country", per_user("DE",
      "FR"))], ["Profile Name"], ["Start Time"], ["Title"])
later("hockey_shots", [("game_id", visit("2024%d")), ("player_id", user("84%05d")), ("event_time", when(ISO)), ("event", pick("SHOT",
      "GOAL", "MISS", "BLOCK", "HIT")), ("x", money(-90, 90)), ("y", money(-40, 40))], ["player_id"], ["event_time"], ["event"])
later("energy", [("Zählernummer", user("1EMH%010d", 7000)), ("Zeitstempel", when("%Y-%m-%dT%H:%M:%S+01:00", 1)), ("Ereignis",
      pick("Spannungsausfall", "Wiederkehr", "Manipulation", "Neustart", "Uhr gestellt")), ("Wert", money(comma=True))], ["Zählernummer"],
      ["Zeitstempel"], ["Ereignis"], delimiter=";")
later("intercom", [("conversation_id", visit("%d")), ("contact_email", per_user("a@x.io", "b@x.io", "c@x.io", "d@x.io", "e@x.io",
      "f@x.io", "g@x.io", "h@x.io", "i@x.io", "j@x.io", "k@x.io", "l@x.io", "m@x.io", "n@x.io", "o@x.io", "p@x.io", "q@x.io", "r@x.io",
      "s@x.io", "t@x.io", "u@x.io", "v@x.io", "w@x.io", "z@x.io")), ("part_type", pick("open", "comment", "assignment", "snoozed",
      "close")), ("created_at", integer())], ["contact_email"], ["created_at"], ["part_type"], form="json", wrap="parts")
later("ferry", [("Saapumisaika", when("%{d}.%{m}.%Y %H:%M")), ("Alus", user("IMO%07d", 9000)), ("Laituri", pick("L1a", "L2b", "L3c",
      "L4d"))], ["Alus"], ["Saapumisaika"], ["Laituri"], tick=60, kind="ambiguous")
later("posthog", [("uuid", row_code(32)), ("event", pick("$pageview", "$autocapture", "signup", "paid", "$pageleave")), ("distinct_id",
      user_code(24)), ("timestamp", when("%Y-%m-%dT%H:%M:%S.%f+00:00")), ("properties", nested(os=per_user("Mac", "Win"), url=pick(*["/a",
      "/b", "/c"])))], ["distinct_id"], ["timestamp"], ["event"], form="jsonl")
later("bank_uk", [("Date", when("%d %b %Y")), ("Type", pick("DEB", "FPI", "DD", "SO", "CPT")), ("Description", words), ("Paid out",
      money()), ("Paid in", any_of("", "", "12.00")), ("Account", user("20-%06d", 10000))], ["Account"], ["Date"], ["Type"], tick=86400,
      mean=30000)
later("czech_shop", [("zakaznik", user("Z%d")), ("datum_objednavky", when("%{d}. %{m}. %Y %H:%M")), ("zbozi", pick("chleba", "mleko",
      "sýr", "rohlík", "pivo")), ("cena", money(comma=True))], ["zakaznik"], ["datum_objednavky"], ["zbozi"], delimiter=";", tick=60,
      encoding="utf-8-sig")
later("tracker_ms_float", [("tag", user("tag%d")), ("t", unix(1000, 1)), ("zone", pick("dock", "aisle", "cold", "pack", "ship"))],
      ["tag"], ["t"], ["zone"])
later("quiz_app", [("learner_hash", user_code(16)), ("question", item("Q%d")), ("answered_at", when("%Y/%m/%d %H:%M:%S")), ("correct",
      any_of("TRUE", "FALSE"))], ["learner_hash"], ["answered_at"], ["question"])
later("restaurant_fr", [("n_carte", user("%d", 4400)), ("date_repas", when("%d/%m/%Y")), ("heure_repas", when("%Hh%M")), ("plat",
      pick("tarte", "quiche", "soupe", "salade", "steak")), ("prix", money(comma=True))], ["n_carte"], ["date_repas,heure_repas"],
      ["plat"], delimiter=";", tick=60)
# ---- a large catalogue beside its categories: most items occur once or twice ----
KINDS = ("kettle", "lamp", "chair", "desk", "rug", "shelf")
for header, kind in (("item", "category"), ("product_id", "category"), ("sku", "department"), ("movie_id", "genre"), ("track_id", "artist")):
    later("large_" + header, [("user", user("u%d")), ("time", unix()), (header, lambda r, rng: "i%d" % int(900 * rng.random() ** 2)),
          (kind, pick(*KINDS))], ["user"], ["time"], [header], types=6)
