"""An order as a buyer's bookkeeping wants it: CSV or JSON, amounts in cents."""

import csv
import io
import json

from report_jobs.orders import Order

COLUMNS = ("order", "sku", "name", "packets", "price_cents", "total_cents")


def csv_form(order: Order) -> bytes:
    """UTF-8, one line for each article, as RFC 4180 has it."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for line in order.lines:
        writer.writerow((order.number, line.sku, line.name, line.packets, line.price_cents, line.total_cents))
    return text.getvalue().encode()


def json_form(order: Order) -> bytes:
    """The same, with the buyer and the sum."""
    lines = [
        {
            "sku": line.sku,
            "name": line.name,
            "packets": line.packets,
            "price_cents": line.price_cents,
            "total_cents": line.total_cents,
        }
        for line in order.lines
    ]
    form = {"order": order.number, "buyer": order.buyer, "total_cents": order.total_cents, "lines": lines}
    return json.dumps(form, ensure_ascii=False, indent=2).encode()
