-- The merchant's own tables. Coatcheck keeps its own in the schema `coatcheck` of the same database.
CREATE TABLE IF NOT EXISTS article (
    sku text PRIMARY KEY,
    name text NOT NULL,
    price_cents integer NOT NULL,
    packets integer NOT NULL CHECK (packets >= 0)
);

CREATE TABLE IF NOT EXISTS purchase (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    buyer text NOT NULL,
    ordered_at timestamptz NOT NULL DEFAULT now(),
    export_job text
);

CREATE TABLE IF NOT EXISTS purchase_line (
    number bigint NOT NULL REFERENCES purchase,
    sku text NOT NULL REFERENCES article,
    packets integer NOT NULL CHECK (packets > 0),
    PRIMARY KEY (number, sku)
);

INSERT INTO article VALUES
    ('bean-scarlet', 'Runner bean, Scarlet Emperor', 260, 1200),
    ('beet-chioggia', 'Beetroot, Chioggia', 190, 800),
    ('foxglove-white', 'Foxglove, white', 240, 300),
    ('marigold-french', 'French marigold', 150, 2000),
    ('pea-sweet', 'Sweet pea, Matucana', 280, 450),
    ('tomato-black', 'Tomato, Black Krim', 310, 60)
ON CONFLICT DO NOTHING
