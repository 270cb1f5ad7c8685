-- What operators did, written in the commit that did it. A number is never given twice.
CREATE TABLE audit (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    actor text NOT NULL,
    origin text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    tenant text COLLATE "C",
    details text NOT NULL
)
