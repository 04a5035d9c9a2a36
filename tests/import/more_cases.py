"""more_cases.py: more files of the collection: logs, printed tables, wide exports, nested JSON, code pages. Columns are as in cases.py."""
from collection import (any_of, case, constant, count, integer, item, money, nested, number_of, per_user, pick, row_code, row_number,
     serial, unix,
                        user, user_code, visit, when, words)
import hashlib, uuid
ISO = "%Y-%m-%d %H:%M:%S"
NAMES = ("Ana Ruiz", "Bo Lind", "Cy Young", "Di Marsh", "Ed Stone", "Flo Baker", "Gus Wolf", "Hal Reed", "Ida Berg", "Jo King",
     "Kim Park", "Lea Roth", "Max Hahn", "Nia Cole", "Oli Frank", "Pia Neri", "Quin Foy", "Rob Hall", "Sue Lane", "Tom Beck", "Uma Rao",
     "Vic Dunn", "Wes Hart", "Xia Chen")
MAIL = tuple(n.split()[0].lower() + "." + n.split()[1].lower() + "@" + d for n, d in zip(NAMES, ("corp.example", "mail.test",
     "shop.example") * 8))
IP = tuple("192.168.%d.%d" % (i % 7, 11 + i * 5) for i in range(24))
PATHS = ("/", "/blog", "/cart", "/api/v1/items", "/login", "/logout", "/search?q=a", "/static/app.js", "/help", "/about", "/admin",
     "/feed")
def uid(kind):
    return lambda r, rng: str(uuid.UUID(hashlib.md5(b"%s%d" % (kind.encode(), r["u"])).hexdigest()))
def rid(r, rng): return str(uuid.UUID(hashlib.md5(b"r%d" % r["i"]).hexdigest()))
def later(text, low=60, high=3000):
    return lambda r, rng: when(text)(dict(r, t=r["t"] + low + int((high - low) * rng.random())), rng)
def real(low, high): return lambda r, rng: round(low + (high - low) * rng.random(), 3)
AMB = dict(kind="ambiguous")

# ---- A: clear ----
case("cloudtrail", [("eventVersion", constant("1.08")), ("userIdentity", nested(type=constant("IAMUser"),
     arn=per_user(*("arn:aws:iam::1234:user/" + n.split()[0] for n in NAMES)))),
     ("eventTime", when("%Y-%m-%dT%H:%M:%SZ")), ("eventSource", any_of("s3.amazonaws.com", "ec2.amazonaws.com", "iam.amazonaws.com")),
     ("eventName", pick("GetObject", "PutObject", "ListBuckets", "RunInstances", "StopInstances", "CreateUser", "AssumeRole",
     "DescribeVpcs")),
     ("awsRegion", any_of("eu-west-1", "us-east-1")), ("sourceIPAddress", any_of(*IP)), ("requestID", row_code()), ("eventID", rid)],
     ["userIdentity.arn"], ["eventTime"], ["eventName"], form="json", wrap="Records", half="dev")
case("combined_log", [("line", lambda r, rng: '%s - - [%s] "GET %s HTTP/1.1" %s %d "-" "Mozilla/5.0 (X11; Linux)"' % (IP[r["u"]],
     when("%d/%b/%Y:%H:%M:%S +0000")(r, rng), PATHS[r["e"]], any_of("200", "200", "304", "404")(r, rng), 100 + r["i"]))],
     ["1", "host"], ["4", "time", "4,5"], ["5", "6", "request", "path"], form="lines", header=False, suffix="log", half="dev")
case("nginx_json", [("time_local", when("%d/%b/%Y:%H:%M:%S +0000")), ("remote_addr", per_user(*IP)), ("remote_user", constant("-")),
     ("request_method", any_of("GET", "GET", "POST")), ("request_uri", pick(*PATHS)), ("status", any_of("200", "304", "404")),
     ("body_bytes_sent", integer(0)), ("request_time", real(0, 2)), ("http_user_agent", any_of("curl/7.1", "Mozilla/5.0"))],
     ["remote_addr"], ["time_local"], ["request_uri"], form="jsonl", half="dev")
case("stripe_events", [("id", row_code()), ("object", constant("event")), ("created", integer()), ("type", pick("invoice.paid",
     "invoice.created", "charge.failed", "charge.refunded", "customer.updated", "plan.changed")),
     ("livemode", constant(True)), ("data", nested(object=nested(customer=user("cus_%d"), amount=number_of(count(100, 9000)),
     currency=constant("eur"))))],
     ["data.object.customer"], ["created"], ["type"], form="json", wrap="data", around={"object": "list", "url": "/v1/events",
     "has_more": False}, half="dev")
case("amazon_orders_wide", [("order-id", row_number("302-%07d")), ("order-item-id", row_number("%d", 5553000)), ("purchase-date",
     when("%Y-%m-%dT%H:%M:%S+00:00")), ("payments-date", later("%Y-%m-%dT%H:%M:%S+00:00")), ("buyer-email", per_user(*MAIL)),
     ("buyer-name", per_user(*NAMES)), ("buyer-phone-number", constant("")),
     ("sku", item("SK-%d")), ("product-name", pick("lamp", "desk", "chair", "sofa", "rug", "shelf", "bed", "stool", "mirror", "clock",
     "vase", "bench")), ("quantity-purchased", count()), ("currency", constant("EUR")), ("item-price", money()), ("item-tax", money(0,
     9)), ("shipping-price", money(0, 9)), ("shipping-tax", constant("0.00")), ("ship-service-level", any_of("Standard", "Expedited"))]
     + [("ship-address-%d" % i, constant("")) for i in range(1, 4)] + [("ship-city", per_user("Ulm", "Bonn", "Kiel")), ("ship-state",
     constant("")), ("ship-postal-code", per_user("89073", "53111", "24103")), ("ship-country", constant("DE")), ("sales-channel",
     constant("Amazon.de")), ("is-business-order", any_of("true", "false")), ("purchase-order-number", constant("")),
     ("price-designation", constant(""))],
     ["buyer-email", "buyer-name"], ["purchase-date"], ["product-name", "sku"], delimiter="\t", half="dev")
case("vitals_wide", [("stay", user("%d", 30000)), ("charted", when(ISO))] + [("vital_%02d" % i, money(20,
     180)) for i in range(40)] + [("intervention", pick("none", "fluids", "oxygen", "sedation", "vasopressor", "dialysis",
     "intubation"))] + [("lab_%02d" % i, money(0, 20)) for i in range(12)],
     ["stay"], ["charted"], ["intervention"], half="dev")
case("xes_csv", [("case:concept:name", user("A_%d")), ("concept:name", pick("A_SUBMITTED", "A_ACCEPTED", "O_SENT", "O_CREATED", "W_Calls",
     "A_DENIED", "A_CANCELLED")), ("time:timestamp", when("%Y-%m-%d %H:%M:%S.%{ms}000+01:00", 1)), ("org:resource", any_of("User_1",
     "User_2", "User_3")), ("lifecycle:transition", any_of("start", "complete")), ("case:AMOUNT_REQ", per_user("5000", "7000", "15000"))],
     ["case:concept:name"], ["time:timestamp"], ["concept:name"], half="dev")
case("yoochoose", [("a", visit("%d")), ("b", when("%Y-%m-%dT%H:%M:%S.%{ms}Z")), ("c", item("2145%05d")), ("d", any_of("0", "S", "3"))],
     ["session", "1"], ["2"], ["3"], header=False, suffix="dat", half="dev")
case("netflix_history", [("Profile Name", per_user(*(n.split()[0] for n in NAMES))), ("Start Time", when(ISO)), ("Duration", lambda r,
     rng: "00:%02d:%02d" % (r["i"] % 60, r["i"] * 7 % 60)), ("Attributes", constant("")), ("Title", pick("Dark", "Ozark", "Lupin",
     "Elite", "Narcos", "You", "Mindhunter", "Glow", "Maid", "Arcane")), ("Supplemental Video Type", constant("")), ("Device Type",
     any_of("Sony TV", "iPhone", "Chrome PC")), ("Bookmark", lambda r, rng: "00:%02d:11" % (r["i"] % 60)), ("Country",
     constant("DE (Germany)"))],
     ["Profile Name"], ["Start Time"], ["Title"], half="dev")
case("korean_shop", [("회원번호", user("M%d")), ("구매일시", when("%Y.%m.%d %H:%M")), ("상품명", pick("사과", "우유", "빵", "쌀", "김치", "라면", "커피", "물")),
     ("금액", count(1000, 90000))], ["회원번호"], ["구매일시"], ["상품명"], tick=60, half="dev")
case("hungarian_shop", [("Ügyfél", user("U-%d")), ("Dátum", when("%Y.%m.%d. %H:%M")), ("Termék", pick("kenyér", "tej", "sajt", "vaj",
     "alma", "körte", "szőlő")), ("Összeg", money(comma=True))], ["Ügyfél"], ["Dátum"], ["Termék"], delimiter=";", tick=60, half="dev")
case("greek_clinic", [("Ασθενής", user("%d")), ("Ημερομηνία", when("%d/%m/%Y %H:%M")), ("Πράξη", pick("εξέταση", "εμβόλιο",
     "ακτινογραφία", "χειρουργείο", "αίμα")), ("Κόστος", money(comma=True))], ["Ασθενής"], ["Ημερομηνία"], ["Πράξη"], delimiter=";",
     tick=60, half="dev")
case("ics_basic", [("UID", row_code()), ("ATTENDEE", per_user(*MAIL)), ("DTSTART", when("%Y%m%dT%H%M%SZ")), ("DTEND",
     later("%Y%m%dT%H%M%SZ")), ("SUMMARY", pick("Standup", "Review", "Retro", "Lunch", "1:1", "Planning", "Demo")), ("LOCATION",
     any_of("Room A", "Room B", "Zoom"))], ["ATTENDEE"], ["DTSTART"], ["SUMMARY"], half="dev")
case("twitter_like", [("created_at", when("%a %b %d %H:%M:%S +0000 %Y")), ("id_str", row_number("%d", 17420000000)), ("text", words),
     ("user", nested(id_str=user("%d", 990), screen_name=per_user(*(n.replace(" ", "_") for n in NAMES)),
     followers_count=number_of(count(1, 900)))), ("action", pick("post", "reply", "retweet", "quote", "like"))],
     ["user.screen_name", "user.id_str"], ["created_at"], ["action"], form="jsonl", half="dev")
case("dotnet_dates", [("EventId", row_number()), ("EmployeeId", user("E%d")), ("Stamp", lambda r, rng: "/Date(%d)/" % (r["t"] * 1000)),
     ("Kind", pick("ClockIn", "ClockOut", "Break", "Travel", "Sick"))], ["EmployeeId"], ["Stamp"], ["Kind"], form="json", half="dev")
case("mongo_export", [("_id", nested(**{"$oid": row_code(24)})), ("ts", nested(**{"$date": when("%Y-%m-%dT%H:%M:%S.%{ms}Z")})), ("userId",
     nested(**{"$oid": user_code(24)})), ("action", pick("view", "save", "share", "delete", "comment")), ("v", constant(3))],
     ["userId.$oid"], ["ts.$date"], ["action"], form="jsonl", half="dev")
case("nycflights", [("year", constant("2024")), ("month", when("%{m}")), ("day", when("%{d}")), ("dep_time", when("%H%M")), ("dep_delay",
     count(-9, 60)), ("carrier", any_of("UA", "AA", "B6")), ("flight", count(100, 2000)), ("tailnum", user("N%dUA")), ("origin",
     any_of("EWR", "LGA", "JFK")), ("dest", pick("IAH", "MIA", "ATL", "ORD", "FLL", "IAD", "MCO", "PBI", "TPA", "LAX")), ("air_time",
     count(60, 300)), ("distance", count(200, 2500)), ("time_hour", when("%Y-%m-%d %H:00:00"))],
     ["tailnum"], ["time_hour"], ["dest"], tick=3600, mean=9000, half="dev")
case("synthea_procedures", [("START", when("%Y-%m-%dT%H:%M:%SZ")), ("STOP", later("%Y-%m-%dT%H:%M:%SZ")), ("PATIENT", uid("p")),
     ("ENCOUNTER", rid), ("CODE", item("4301%05d")), ("DESCRIPTION", pick("Colonoscopy", "Suture", "Spirometry", "Vaccination",
     "Dialysis", "X-ray", "Cast", "Biopsy", "Exam", "EKG", "Cleaning", "Filling")), ("BASE_COST", money(100, 5000)), ("REASONCODE",
     constant("")), ("REASONDESCRIPTION", constant(""))],
     ["PATIENT"], ["START"], ["DESCRIPTION", "CODE"], half="dev")
case("loyalty_ints", [("MEMBER_NBR", user("%d", 40001234)), ("TRANS_DT", when("%Y%m%d")), ("TRANS_TM", when("%H%M%S")), ("STORE_NBR",
     any_of("101", "102", "103")), ("UPC_NBR", item("40012345%05d")), ("UPC_DESC", pick("MILK 1L", "BREAD", "EGGS 6", "HAM", "SOAP",
     "RICE 1KG", "TEA", "JUICE", "WINE", "CHIPS", "BEANS", "SALT")), ("QTY", count()), ("AMT", money())],
     ["MEMBER_NBR"], ["TRANS_DT,TRANS_TM", "TRANS_DT TRANS_TM"], ["UPC_NBR", "UPC_DESC"], delimiter="|", suffix="txt", half="dev")
case("iis_w3c", [("date", when("%Y-%m-%d")), ("time", when("%H:%M:%S")), ("s-ip", constant("10.0.0.1")), ("cs-method", any_of("GET",
     "GET", "POST")), ("cs-uri-stem", pick(*PATHS)), ("cs-username", constant("-")), ("c-ip", per_user(*IP)), ("sc-status", any_of("200",
     "404", "500")), ("time-taken", count(1, 900))],
     ["c-ip"], ["date,time", "date time"], ["cs-uri-stem"], delimiter=" ", header=False,
     before=["#Software: Microsoft Internet Information Services 10.0", "#Version: 1.0", "#Date: 2024-01-03 08:15:00",
     "#Fields: date time s-ip cs-method cs-uri-stem cs-username c-ip sc-status time-taken"], suffix="log", half="dev")
case("brazil_bank", [("Conta", user("%d-1", 44010)), ("Data Lançamento", when("%d/%m/%Y")), ("Histórico", pick("Pix", "Boleto", "Salário",
     "Tarifa", "Saque", "Compra", "Estorno")), ("Valor", lambda r, rng: "-1.%03d,%02d" % (r["i"], r["i"] % 100)), ("Saldo",
     money(comma=True))],
     ["Conta"], ["Data Lançamento"], ["Histórico"], delimiter=";", tick=86400, mean=30000, before=["Extrato Conta Corrente",
     "Período: 01/01/2024 a 31/12/2024", ""], half="dev")
case("excel_sep", [("Kunde", user("K%d")), ("Bestelltag", when("%d.%m.%Y %H:%M:%S")), ("Leistung", pick("Wartung", "Montage", "Abholung",
     "Beratung", "Prüfung")), ("Betrag", money(comma=True)), ("", constant(""))], ["Kunde"], ["Bestelltag"], ["Leistung"], delimiter=";",
     before=["sep=;"], encoding="utf-8-sig", half="dev")
case("pst_times", [("Agent Name", any_of("Ann", "Bob")), ("Account", user("ACC-%d")), ("Logged", when("%b %{d}, %Y, %{I}:%M:%S %p PST",
     -8)), ("Disposition", pick("Answered", "Voicemail", "Busy", "No answer", "Callback")), ("Talk seconds", count(5, 900))], ["Account"],
     ["Logged"], ["Disposition"], half="dev")

# ---- A: ambiguous ----
case("tafeng", [("TRANSACTION_DT", when("%{m}/%{d}/%Y")), ("CUSTOMER_ID", user("%d", 1104905)), ("AGE_GROUP", per_user("45-49", "30-34")),
     ("PIN_CODE", per_user("115", "221", "Others")), ("PRODUCT_SUBCLASS", any_of("110411", "130315", "110217", "100205")), ("PRODUCT_ID",
     item("471008%07d")), ("AMOUNT", count()), ("ASSET", count(10, 90)), ("SALES_PRICE", count(10, 99))],
     ["CUSTOMER_ID"], ["TRANSACTION_DT"], ["PRODUCT_ID", "PRODUCT_SUBCLASS"], tick=86400, mean=30000, **AMB, half="dev")
case("taobao", [("a", user("%d", 1)), ("b", item("226%04d")), ("c", any_of("1464116", "2520377", "982926")), ("d", any_of("pv", "pv",
     "cart", "fav", "buy")), ("e", unix())], ["1"], ["5"], ["2", "4", "2,4"], header=False, **AMB, half="dev")
case("chicago_taxi", [("Trip ID", row_code(40)), ("Taxi ID", user_code(40)), ("Trip Start Timestamp", when("%m/%d/%Y %I:%M:00 %p")),
     ("Trip End Timestamp", later("%m/%d/%Y %I:%M:00 %p")), ("Trip Seconds", count(60, 3000)), ("Trip Miles", money(0, 20)),
     ("Pickup Community Area", any_of("8", "32", "76", "28")), ("Dropoff Community Area", pick("8", "32", "28", "6", "7", "33")), ("Fare",
     money(3, 60)), ("Tips", money(0, 9)), ("Payment Type", any_of("Cash", "Credit Card")), ("Company", per_user("Flash Cab", "Sun Taxi",
     "City Service"))],
     ["Taxi ID"], ["Trip Start Timestamp"], ["Pickup Community Area", "Dropoff Community Area", "Payment Type"], tick=60, **AMB,
     half="dev")
case("logfmt", [("line", lambda r, rng: 'time=%s level=%s user=%s action=%s dur=%dms' % (when("%Y-%m-%dT%H:%M:%SZ")(r, rng),
     any_of("info", "info", "warn")(r, rng), "u%d" % r["u"], pick("login", "open", "save", "print", "close")(r, rng), r["i"] % 90))],
     ["user"], ["time"], ["action"], form="lines", header=False, suffix="log", **AMB, half="dev")
case("psql_aligned", [("line", lambda r, rng: " %-6d | %s | %-10s | %6d" % (100 + r["u"], when(ISO)(r, rng), pick("view", "edit", "move",
     "close", "reopen")(r, rng), r["i"]))], ["account"], ["at"], ["what"], form="lines", header=False,
     before=[" account |         at          |    what    |  n", "---------+---------------------+------------+-------"],
     after=["(420 rows)", ""], suffix="txt", **AMB, half="dev")
case("login_history", [("Username", per_user(*MAIL)), ("Login Time", when("%{m}/%{d}/%Y, %{I}:%M:%S %p")), ("Login Type",
     any_of("Application", "SAML", "Remote Access")), ("Status", any_of("Success", "Success", "Invalid Password", "Locked")),
     ("Source IP", any_of(*IP)), ("Browser", any_of("Chrome", "Safari", "Edge"))], ["Username"], ["Login Time"], ["Status", "Login Type",
     "Login Type,Status"], **AMB, half="dev")
case("football_clock", [("match_id", user("%d", 7400, 1)), ("period", constant("1")), ("clock", lambda r,
     rng: "%02d:%02d:%02d.120" % ((r["t"] - 1704269700) // 3600 % 90, r["t"] // 60 % 60, r["t"] % 60)), ("team", any_of("home", "away")),
     ("type", pick("Pass", "Carry", "Shot", "Foul", "Press", "Duel"))], ["match_id"], ["clock"], ["type"], any_times=True, mean=60, **AMB,
     half="dev")

# ---- B: clear ----
case("squid", [("line", lambda r, rng: "%d.%03d %6d %s TCP_%s/200 %d GET http://%s/ - HIER_DIRECT/10.9.8.7 text/html" % (r["t"], 0,
     r["i"] % 900, IP[r["u"]], any_of("MISS", "HIT")(r, rng), 900 + r["i"], pick("news.example", "mail.example", "shop.example",
     "cdn.example", "wiki.example", "video.example")(r, rng)))],
     ["3"], ["1"], ["7"], form="lines", header=False, suffix="log", half="held")
case("snowplow_wide", [("app_id", constant("web")), ("platform", constant("web")), ("etl_tstamp", later("%Y-%m-%d %H:%M:%S.%{ms}", 600,
     4000)), ("collector_tstamp", later("%Y-%m-%d %H:%M:%S.%{ms}", 1, 3)), ("dvce_created_tstamp", when("%Y-%m-%d %H:%M:%S.%{ms}")),
     ("event", pick("page_view", "page_ping", "struct", "transaction", "unstruct", "ad_click")), ("event_id", rid), ("txn_id",
     constant("")), ("name_tracker", constant("cf")), ("v_tracker", constant("js-3.5")), ("user_id", constant("")), ("user_ipaddress",
     any_of(*IP)), ("user_fingerprint", constant("")), ("domain_userid", uid("d")), ("domain_sessionidx", count(1, 9)), ("network_userid",
     constant("")), ("geo_country", per_user("DE", "FR", "US")), ("geo_region", constant("")), ("geo_city", per_user("Berlin", "Paris",
     "NYC")), ("page_title", any_of("Home", "Shop", "Blog")), ("page_referrer", constant(""))]
     + [("mkt_%s" % s, constant("")) for s in ("medium", "source", "term", "content", "campaign")] + [("br_%s" % s, any_of("a",
     "b")) for s in ("name", "family", "type", "lang", "features")] + [("dvce_screenwidth", any_of("1920", "1440", "390")),
     ("doc_charset", constant("utf-8"))],
     ["domain_userid"], ["dvce_created_tstamp", "collector_tstamp"], ["event", "page_title"], delimiter="\t", any_times=True, half="held")
case("windows_events", [("Level", any_of("Information", "Information", "Warning")), ("Date and Time", when("%{m}/%{d}/%Y %{I}:%M:%S %p")),
     ("Source", any_of("Security-Auditing", "Service Control Manager")), ("Event ID", item("4%03d")), ("Task Category", any_of("Logon",
     "None")), ("Computer", user("PC-%d"))], ["Computer"], ["Date and Time"], ["Event ID"], half="held")
case("gharchive_nested", [("id", row_number("%d", 34500000000)), ("type", pick("PushEvent", "WatchEvent", "ForkEvent", "IssuesEvent",
     "CreateEvent", "DeleteEvent")), ("actor", nested(id=number_of(user("%d", 77000)),
     login=per_user(*(n.split()[0].lower() for n in NAMES)), avatar_url=constant("https://x"))), ("repo", nested(id=number_of(item("%d")),
     name=pick("a/x", "b/y", "c/z", "d/w"))), ("payload", nested(size=number_of(count()), ref=constant("refs/heads/main"))), ("public",
     constant(True)), ("created_at", when("%Y-%m-%dT%H:%M:%SZ"))],
     ["actor.login", "actor.id"], ["created_at"], ["type"], form="jsonl", zip=True, half="held")
case("gym_two_columns", [("Member Name", per_user(*NAMES)), ("Check-in Date", when("%b %{d}, %Y")), ("Check-in Time", when("%{I}:%M %p")),
     ("Class", pick("Spin", "Yoga", "Pilates", "Boxing", "Swim", "Weights")), ("Guest", any_of("No", "No", "Yes"))], ["Member Name"],
     ["Check-in Date,Check-in Time", "Check-in Date Check-in Time"], ["Class"], tick=60, half="held")
case("moodle_es", [("alumno", user("al%d")), ("curso", any_of("Mates", "Lengua")), ("fecha_entrega", when("%Y-%m-%dT%H:%M:%S")),
     ("actividad", pick("tarea", "foro", "examen", "lectura", "proyecto", "debate")), ("nota", money(0, 10, comma=True))], ["alumno"],
     ["fecha_entrega"], ["actividad"], delimiter=";", encoding="utf-8-sig", half="held")
case("chain_transfers", [("tx_hash", row_code(32)), ("block_number", integer(1 / 12)), ("block_timestamp", when("%Y-%m-%d %H:%M:%S UTC")),
     ("from_address", lambda r, rng: "0x" + user_code(32)(r, rng)), ("to_address", any_of(*("0x%032x" % (i * 7919) for i in range(400)))),
     ("method", pick("transfer", "approve", "swap", "mint", "burn", "stake")), ("value", count(1000, 10 ** 12)), ("gas", count(21000,
     90000))], ["from_address"], ["block_timestamp"], ["method"], half="held")
case("library_checkouts", [("checkout_datetime", when(ISO)), ("item_barcode", item("3900%06d")), ("title", pick("Emma", "Dune", "Ulysses",
     "Beloved", "Holes", "It", "Circe", "Ivanhoe", "Utopia", "Medea", "Kim", "She")), ("patron_id", user("P%07d")), ("branch",
     per_user("Main", "East", "West"))], ["patron_id"], ["checkout_datetime"], ["title", "item_barcode"], half="held")
case("epoch_decimal_comma", [("Gerät", user("G%d")), ("Zeitstempel", lambda r, rng: "%d,250" % r["t"]), ("Zustand", pick("an", "aus",
     "bereit", "fehler", "wartung")), ("Wert", money(comma=True))], ["Gerät"], ["Zeitstempel"], ["Zustand"], delimiter=";", half="held")
case("danish_log", [("Kunde", user("%d", 220000)), ("Tidspunkt", when("%d-%m-%Y %H:%M:%S")), ("Handling", pick("køb", "retur", "besøg",
     "klage", "opkald", "klik")), ("Beløb", money(comma=True))], ["Kunde"], ["Tidspunkt"], ["Handling"], delimiter=";",
     encoding="latin-1", half="held")
case("callcenter_de", [("Anrufer", user("+49170%06d", 220000)), ("Beginn", when("%d.%m.%Y %H:%M:%S")), ("Ende", later("%d.%m.%Y %H:%M:%S",
     5, 900)), ("Dauer", count(5, 900)), ("Ergebnis", pick("gelöst", "weitergeleitet", "abgebrochen", "Rückruf", "offen"))], ["Anrufer"],
     ["Beginn"], ["Ergebnis"], delimiter=";", encoding="cp1252", half="held")
case("itsm_wide", [("Number", row_number("INC%07d"))] + [("u_field_%02d" % i, constant("")) for i in range(20)] + [("Caller",
     per_user(*NAMES)), ("Opened", when("%d-%m-%Y %H:%M:%S")), ("Resolved", later("%d-%m-%Y %H:%M:%S", 600, 90000)), ("Category",
     pick("Network", "Software", "Hardware", "Access", "Email", "Printer")), ("Priority", any_of("3 - Moderate", "4 - Low")),
     ("Assignment group", any_of("Desk", "Field")), ("Short description", words)] + [("sys_%02d" % i, any_of("true",
     "false")) for i in range(12)], ["Caller"], ["Opened"], ["Category"], half="held")
case("podcast_json", [("listener", nested(uuid=uid("l"), country=per_user("DE", "SE"))), ("episode", nested(id=item("ep%d"),
     show=pick("Daily", "Radio", "Lore", "Serial", "Planet", "Hidden"))), ("startedAt", integer(1000)), ("finishedAt", lambda r,
     rng: r["t"] * 1000 + 900000), ("client", any_of("ios", "web"))], ["listener.uuid"], ["startedAt"], ["episode.id", "episode.show"],
     form="pretty", half="held")
case("arabic_orders", [("العميل", user("ع%d")), ("التاريخ", when("%Y/%m/%d %H:%M")), ("المنتج", pick("خبز", "حليب", "تمر", "أرز", "شاي",
     "عسل")), ("السعر", money())], ["العميل"], ["التاريخ"], ["المنتج"], tick=60, half="held")
case("finnish_dots", [("Asiakas", user("A%d")), ("Aika", when("%{d}.%{m}.%Y %{H}.%M")), ("Tuote", pick("maito", "leipä", "juusto",
     "kahvi", "kala", "voi")), ("Hinta", money(comma=True))], ["Asiakas"], ["Aika"], ["Tuote"], delimiter=";", tick=60, half="held")
case("nulls_tsv", [("log_id", row_number("%d", 900)), ("acct", user("%d", 5100)), ("session_ref", any_of("\\N", "\\N", "x1")),
     ("happened", when(ISO)), ("verb", pick("create", "read", "update", "delete", "export", "share")), ("object_id", any_of("NULL", "12",
     "13")), ("notes", constant("NULL"))], ["acct"], ["happened"], ["verb"], delimiter="\t", half="held")
case("ev_chargers", [("Station Name", user("Station %d", 1, 1)), ("MAC Address", per_user(*("0024:%04d" % i for i in range(24)))),
     ("Org Name", constant("City")), ("Start Date", when("%{m}/%{d}/%Y %{H}:%M")), ("Start Time Zone", constant("PST")), ("End Date",
     later("%{m}/%{d}/%Y %{H}:%M")), ("Energy (kWh)", money(1, 40)), ("Plug Type", any_of("J1772", "NEMA")), ("Ended By", pick("Plug Out",
     "Customer", "Timeout", "CPS Server", "Outage"))], ["Station Name", "MAC Address"], ["Start Date"], ["Ended By", "Plug Type"],
     tick=60, any_times=True, half="held")
case("game_levels", [("player_id", user("%d", 1, 1)), ("logged_at", when("%Y-%m-%d %H:%M:%S.%{ms}")), ("level", count(1, 60)), ("gold",
     count(0, 9999)), ("event", pick("start", "win", "lose", "buy", "quit", "revive"))], ["player_id"], ["logged_at"], ["event"],
     delimiter="\t", order="user", half="held")
case("heat_pump_latest", [("Timestamp (UTC)", when("%Y-%m-%d %H:%M:%S")), ("Serial", user("HP%06d")), ("Code", item("E%d")), ("Meaning",
     pick("ok", "defrost", "low flow", "high temp", "sensor", "restart", "lockout", "fan", "valve", "pump", "power", "reset")),
     ("Outdoor °C", money(-9, 30))], ["Serial"], ["Timestamp (UTC)"], ["Code", "Meaning"], order="latest", encoding="utf-16", half="held")
case("survey_two_digit", [("Respondent", user("R%d")), ("Wave date", when("%{d}-%b-%y")), ("Answer", pick("A", "B", "C", "D", "E")),
     ("Weight", money(0, 3))], ["Respondent"], ["Wave date"], ["Answer"], tick=86400, mean=40000, half="held")

# ---- B: ambiguous ----
case("postgres_csvlog", [("a", when("%Y-%m-%d %H:%M:%S.%{ms} UTC")), ("b", per_user(*(n.split()[0].lower() for n in NAMES))), ("c",
     constant("appdb")), ("d", any_of("4211", "4390", "5012")), ("e", any_of(*("10.1.0.%d:5432" % i for i in range(9)))), ("f",
     row_code(8)), ("g", row_number()), ("h", pick("SELECT", "INSERT", "UPDATE", "DELETE", "COMMIT", "BEGIN")), ("i", constant("LOG")),
     ("j", constant("00000")), ("k", words)] + [("x%d" % i, constant("")) for i in range(8)] + [("z", constant("psql"))], ["2"], ["1"],
     ["8"], header=False, **AMB, half="held")
case("eicu_offset", [("labid", row_number("%d", 55000)), ("patientunitstayid", user("%d", 141168)), ("labresultoffset", lambda r,
     rng: "%d" % ((r["t"] - 1704269700) // 60)), ("labtypeid", any_of("1", "3", "4")), ("labname", pick("glucose", "sodium", "BUN", "Hgb",
     "WBC", "platelets")), ("labresult", money())], ["patientunitstayid"], ["labresultoffset"], ["labname"], any_times=True, **AMB,
     half="held")
case("casas_home", [("line", lambda r, rng: "%s\tM%03d\t%s" % (when("%Y-%m-%d %H:%M:%S.%{ms}000")(r, rng), 1 + r["u"], any_of("ON",
     "OFF")(r, rng)))], ["2"], ["1"], ["3"], form="lines", header=False, suffix="txt", **AMB, half="held")
case("cyrillic_cp1251", [("Клиент", user("К-%d")), ("Дата", when("%d.%m.%Y %H:%M")), ("Услуга", pick("стрижка", "массаж", "маникюр",
     "окраска", "уход"))], ["Клиент"], ["Дата"], ["Услуга"], delimiter=";", encoding="cp1251", tick=60, **AMB, half="held")
case("jira_changes", [("Issue key", user("APP-%d")), ("Changed", when("%d/%b/%y %{I}:%M %p")), ("Author", any_of(*NAMES[:5])), ("Field",
     constant("status")), ("From", any_of("To Do", "In Progress", "Review")), ("To", pick("In Progress", "Review", "Done", "Blocked",
     "To Do"))], ["Issue key"], ["Changed"], ["To", "From", "From,To"], tick=60, **AMB, half="held")
case("transfers_two_sides", [("payer", user("P%d")), ("payee", lambda r, rng: "P%d" % (1000 + 37 * int(24 * rng.random()))), ("booked",
     when(ISO)), ("purpose", pick("rent", "food", "gift", "loan", "fee"))], ["payer", "payee"], ["booked"], ["purpose"], **AMB,
     half="held")

# ---- more ----
case("zendesk_audits", [("id", row_number("%d", 880000)), ("ticket_id", user("%d", 3100)), ("created_at", when("%Y-%m-%dT%H:%M:%SZ")),
     ("author_id", any_of("371", "372", "373", "374")), ("via", nested(channel=any_of("web", "email"))), ("change",
     nested(field_name=constant("status"), value=pick("new", "open", "pending", "hold", "solved", "closed")))], ["ticket_id"],
     ["created_at"], ["change.value"], form="json", wrap="audits")
case("posthog_csv", [("uuid", rid), ("event", pick("$pageview", "$autocapture", "signed_up", "upgraded", "$pageleave", "exported")),
     ("properties.$os", any_of("Mac OS X", "Windows")), ("properties.$current_url", any_of(*("https://app.x" + p for p in PATHS))),
     ("timestamp", when("%Y-%m-%d %H:%M:%S.%{ms}000+00:00")), ("team_id", constant("2")), ("distinct_id", uid("ph")), ("created_at",
     later("%Y-%m-%d %H:%M:%S.%{ms}000+00:00", 1, 9))], ["distinct_id"], ["timestamp"], ["event"])
case("woo_orders", [("order_number", row_number("%d", 3300)), ("date_created", when("%d/%m/%Y %H:%M")), ("status", any_of("completed",
     "completed", "refunded")), ("billing_email", per_user(*MAIL)), ("billing_country", per_user("IT", "ES")), ("line_item_name",
     pick("mug", "shirt", "cap", "poster", "sticker", "hoodie", "bag")), ("line_item_qty", count()), ("order_total", money())],
     ["billing_email"], ["date_created"], ["line_item_name"], tick=60)
case("dunnhumby_days", [("household_key", user("%d", 1, 1)), ("BASKET_ID", visit("269%d")), ("DAY", lambda r,
     rng: "%d" % ((r["t"] - 1704240000) // 86400)), ("PRODUCT_ID", item("8%05d")), ("QUANTITY", count()), ("SALES_VALUE", money()),
     ("STORE_ID", any_of("364", "367", "321")), ("TRANS_TIME", when("%H%M"))], ["household_key"], ["DAY", "DAY,TRANS_TIME"],
     ["PRODUCT_ID"], any_times=True)
case("acquire_shop", [("id", user("%d", 86246)), ("chain", per_user("205", "18", "95")), ("dept", any_of("7", "63", "97")), ("category",
     item("70%d")), ("company", any_of("107829", "101200")), ("brand", any_of("17311", "9907")), ("date", when("%Y-%m-%d")),
     ("productsize", money(1, 50)), ("purchasequantity", count()), ("purchaseamount", money())], ["id"], ["date"], ["category"],
     tick=86400, mean=30000)
case("santander_bici", [("Genero_Usuario", per_user("M", "F")), ("Bici", user("%d", 1001)), ("Ciclo_Estacion_Retiro", any_of("85", "23",
     "271")), ("Fecha_Retiro", when("%d/%m/%Y")), ("Hora_Retiro", when("%H:%M:%S")), ("Ciclo_Estacion_Arribo", pick("85", "23", "271",
     "43", "36", "1"))], ["Bici"], ["Fecha_Retiro,Hora_Retiro"], ["Ciclo_Estacion_Arribo", "Ciclo_Estacion_Retiro"], any_times=True,
     **AMB)
case("git_numstat", [("commit", row_code(40)), ("author_email", per_user(*MAIL)), ("author_date", when("%a %b %{d} %H:%M:%S %Y +0200",
     2)), ("path", pick("src/a.c", "src/b.c", "README.md", "Makefile", "docs/x.md", "test/t.c")), ("insertions", count(0, 90)),
     ("deletions", count(0, 40))], ["author_email"], ["author_date"], ["path"])
case("slack_export", [("type", constant("message")), ("user", user("U0%d")), ("ts", lambda r, rng: "%d.%06d" % (r["t"], r["i"])),
     ("channel_name", pick("general", "random", "dev", "ops", "sales", "help")), ("text", words)], ["user"], ["ts"], ["channel_name"],
     form="pretty")
case("firebase_export", [("event_date", when("%Y%m%d")), ("event_timestamp", integer(1000000)), ("event_name", pick("first_open",
     "session_start", "screen_view", "level_up", "in_app_purchase", "app_remove")), ("event_params", lambda r,
     rng: [{"key": "ga_session_id", "value": {"int_value": str(r["s"])}}, {"key": "x", "value": {"string_value": "y"}}]),
     ("user_pseudo_id", user_code(32)), ("device", nested(category=constant("mobile"), language=any_of("de", "en"))), ("geo",
     nested(country=per_user("Germany", "France"))), ("platform", constant("ANDROID"))], ["user_pseudo_id"], ["event_timestamp"],
     ["event_name"], form="jsonl")
case("cdc_orders", [("op", any_of("c", "u", "u")), ("ts_ms", integer(1000)), ("after", nested(order_id=number_of(user("%d", 900)),
     state=pick("created", "paid", "packed", "shipped", "delivered", "returned"), updated_at=when("%Y-%m-%dT%H:%M:%SZ"))), ("source",
     nested(db=constant("shop"), table=constant("orders")))], ["after.order_id"], ["after.updated_at", "ts_ms"], ["after.state"],
     form="jsonl")
case("k12_edx", [("username", user("stu%d")), ("event_type", pick("play_video", "pause_video", "problem_check", "seek_video",
     "page_close", "load_video")), ("time", when("%Y-%m-%dT%H:%M:%S.%{ms}000+00:00")), ("course_id", any_of("MITx/6.002x",
     "HarvardX/CS50x")), ("session", visit("se%d")), ("ip", any_of(*IP)), ("agent", any_of("Mozilla", "Chrome"))], ["username"], ["time"],
     ["event_type"], form="jsonl", zip=True)
case("polish_bank_1250", [("Data operacji", when("%d.%m.%Y")), ("Numer rachunku", user("PL%08d", 11000000)), ("Rodzaj operacji",
     pick("Przelew wychodzący", "Wpłata gotówki", "Opłata", "Płatność kartą", "Wypłata", "Zasilenie")), ("Kwota", money(comma=True)),
     ("Saldo po operacji", money(comma=True))], ["Numer rachunku"], ["Data operacji"], ["Rodzaj operacji"], delimiter=";",
     encoding="cp1250", tick=86400, mean=30000)
case("czech_eshop", [("Zákazník", user("Z%d")), ("Datum objednávky", when("%{d}. %{m}. %Y %{H}:%M")), ("Zboží", pick("rohlík", "mléko",
     "sýr", "pivo", "káva", "šunka")), ("Cena", money(comma=True))], ["Zákazník"], ["Datum objednávky"], ["Zboží"], delimiter=";",
     tick=60)
case("russian_crm_1251", [("ID клиента", user("%d", 70400)), ("Дата события", when("%d.%m.%Y %H:%M:%S")), ("Тип события", pick("звонок",
     "письмо", "встреча", "сделка", "отказ")), ("Менеджер", any_of("Иванов", "Петров"))], ["ID клиента"], ["Дата события"],
     ["Тип события"], delimiter=";", encoding="cp1251")
case("japan_pos", [("会員ID", user("K%06d")), ("購入日", when("%Y/%m/%d")), ("購入時刻", when("%H:%M:%S")), ("商品コード", item("49%06d")), ("数量",
     count()), ("金額", count(100, 9000))], ["会員ID"], ["購入日,購入時刻"], ["商品コード"])
case("chinese_logs", [("用户ID", user("%d", 88001)), ("访问时间", when("%Y-%m-%d %H:%M:%S")), ("页面", pick("首页", "商品页", "购物车", "结算", "个人中心",
     "搜索")), ("停留秒数", count(1, 600)), ("城市", per_user("北京", "上海"))], ["用户ID"], ["访问时间"], ["页面"])
case("swedish_vard", [("Patient", user("19%06d", 550101)), ("Besöksdatum", when("%Y-%m-%d")), ("Diagnoskod", pick("I10", "E11", "J06",
     "M54", "F32", "K21")), ("Vårdgivare", any_of("A", "B", "C"))], ["Patient"], ["Besöksdatum"], ["Diagnoskod"], delimiter="\t",
     encoding="latin-1", tick=86400, mean=40000)
case("mt_trades", [("Ticket", row_number("%d", 5551000)), ("Login", user("%d", 20011)), ("Open Time", when("%Y.%m.%d %H:%M:%S")), ("Type",
     any_of("buy", "sell")), ("Volume", money(0, 2)), ("Symbol", pick("EURUSD", "USDJPY", "XAUUSD", "GBPUSD", "US30", "BTCUSD")),
     ("Close Time", later("%Y.%m.%d %H:%M:%S")), ("Profit", money(-90, 90))], ["Login"], ["Open Time"], ["Symbol"])
case("elevator_faults", [("UNIT", user("EL-%04d")), ("FAULT_TS", when("%m-%d-%Y %H:%M:%S")), ("FAULT_CD", pick("F01", "F02", "F07", "F11",
     "F20", "F33", "F40")), ("SEVERITY", any_of("1", "2", "3")), ("CLEARED_TS", later("%m-%d-%Y %H:%M:%S"))], ["UNIT"], ["FAULT_TS"],
     ["FAULT_CD"])
case("wide_adtech", [("auction_id", rid), ("auction_ts", integer(1000)), ("cookie", user_code(24)), ("campaign_name", pick("spring",
     "brand", "retarget", "launch", "sale", "video"))] + [("seg_%03d" % i, any_of("0", "1")) for i in range(60)] + [("bid", money(0, 3)),
     ("won", any_of("true", "false")), ("geo", per_user("DE", "AT")), ("ua", any_of("a", "b"))], ["cookie"], ["auction_ts"],
     ["campaign_name"])
case("java_log", [("line", lambda r, rng: "%s,%03d %-5s [%s] %s - %s" % (when(ISO)(r, rng), r["i"] % 1000, any_of("INFO", "WARN",
     "INFO")(r, rng), "worker-%d" % r["u"], pick("Loader", "Parser", "Writer", "Cache", "Auth")(r, rng), words(r, rng)))], ["4"], ["1,2"],
     ["5", "3"], form="lines", header=False, suffix="log", **AMB)
case("haproxy_keys", [("line", lambda r, rng: 'ts="%s" client=%s path="%s" method=GET status=%d' % (when(ISO)(r, rng), IP[r["u"]],
     PATHS[r["e"]], any_of(200, 404)(r, rng)))], ["client"], ["ts"], ["path"], form="lines", header=False, suffix="log")
case("mysql_box", [("line", lambda r, rng: "| %6d | %s | %-9s |" % (100 + r["u"], when(ISO)(r, rng), pick("login", "deposit", "bet",
     "withdraw", "logout")(r, rng)))], ["player"], ["at"], ["kind"], form="lines", header=False,
     before=["+--------+---------------------+-----------+", "| player | at                  | kind      |",
     "+--------+---------------------+-----------+"], after=["+--------+---------------------+-----------+",
     "420 rows in set (0.00 sec)"], suffix="txt")
case("usage_minutes", [("subscriber_no", user("%d", 79160000)), ("call_start", when("%d%b%Y:%H:%M:%S")), ("svc_type", pick("voice", "sms",
     "data", "roaming", "mms")), ("duration_s", count(0, 3600)), ("cell", any_of("c1", "c2", "c3"))], ["subscriber_no"], ["call_start"],
     ["svc_type"])
case("home_assistant", [("entity_id", user("sensor.room_%d", 1, 1)), ("state", pick("on", "off", "unavailable", "idle", "heat")),
     ("last_changed", when("%Y-%m-%dT%H:%M:%S.%{ms}Z"))], ["entity_id"], ["last_changed"], ["state"])
case("intune_devices", [("DeviceName", user("LAPTOP-%d")), ("ActivityDateTime", when("%Y-%m-%d %H:%M:%S.0000000")), ("ActivityType",
     pick("Wipe", "Sync", "Retire", "Restart", "Lock", "Rename")), ("ActorUPN", any_of(*MAIL[:4])), ("Result", any_of("Success",
     "Failure"))], ["DeviceName"], ["ActivityDateTime"], ["ActivityType"], **AMB)
case("beer_reviews", [("brewery_id", any_of("10325", "1075", "163")), ("review_time", unix()), ("review_overall", any_of("4", "4.5",
     "3")), ("review_profilename", user("beerfan%d")), ("beer_style", any_of("IPA", "Stout", "Pils")), ("beer_name", pick("Sausa",
     "Red Moon", "Black Horse", "Caldera", "Pilsner", "Amber", "Bock", "Tripel", "Saison", "Porter")), ("beer_beerid", item("4%04d"))],
     ["review_profilename"], ["review_time"], ["beer_beerid", "beer_name", "beer_style"], **AMB)
case("airbnb_sessions", [("user_id", user_code(10)), ("action", pick("lookup", "search_results", "show", "index", "personalize",
     "create")), ("action_type", any_of("click", "data", "view")), ("action_detail", any_of("view_search_results", "p3", "wishlist")),
     ("device_type", per_user("Mac Desktop", "iPhone")), ("ts", unix())], ["user_id"], ["ts"], ["action", "action_type", "action_detail"],
     **AMB)
case("olist_like", [("order_id", row_code(32)), ("customer_unique_id", user_code(32)), ("order_status", any_of("delivered", "shipped")),
     ("order_purchase_timestamp", when(ISO)), ("order_approved_at", later(ISO, 60, 900)), ("order_delivered_customer_date", later(ISO,
     90000, 900000)), ("product_category_name", pick("beleza_saude", "moveis", "brinquedos", "pet_shop", "bebes", "papelaria"))],
     ["customer_unique_id"], ["order_purchase_timestamp"], ["product_category_name"], any_times=True)
case("anon_short", [("u", user("%d", 1)), ("i", item("%d", 1)), ("t", unix()), ("r", any_of("3", "4", "5"))], ["u"], ["t"], ["i"])
case("traffic_stops", [("plate", user("KA-%d")), ("ts", when("%Y-%m-%dT%H:%M:%S+0530", 5.5)), ("camera", pick("C1", "C2", "C3", "C4",
     "C5", "C6")), ("speed", money(20, 120))], ["plate"], ["ts"], ["camera"])
case("hr_clock_us", [("Badge #", user("%d", 4000)), ("Punch Date", when("%m/%d/%Y")), ("Punch Time", when("%{I}:%M:%S %p")),
     ("Punch Type", pick("IN", "OUT", "LUNCH OUT", "LUNCH IN")), ("Dept", per_user("HR", "IT", "FIN"))], ["Badge #"],
     ["Punch Date,Punch Time"], ["Punch Type"])
case("no_users_weather", [("station_time", when(ISO)), ("temp", money(-5, 30)), ("rain", money(0, 9)), ("wind", money(0, 40))], [], [],
     [], kind="hopeless")
case("dates_eu_us", [("guest", user("G%d")), ("arrival", lambda r, rng: "%02d.%02d.2023" % (1 + r["i"] % 12, 1 + r["i"] // 40)), ("room",
     pick("single", "double", "suite", "twin"))], ["guest"], ["arrival"], ["room"], any_times=True, **AMB)
