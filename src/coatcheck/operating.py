"""What operators do to a store that they do not serve from: look at it, and bring it up to date."""

from coatcheck.runtime import fault_point_of, load_engine
from coatcheck.setting_values import sqlite_path
from coatcheck.settings import Settings
from coatcheck.store.database import StoreDatabase
from coatcheck.stores.sqlite.database import SqliteDatabase


def open_database(settings: Settings) -> StoreDatabase:
    """What `store` names.

    Raises:
        StartRefused: its driver is not installed.
    """
    fault_point = fault_point_of(settings)
    path = sqlite_path(settings.store)
    if path is not None:
        return SqliteDatabase(path, fault_point)
    is_pooled = settings.postgres_pooler is not None
    database: StoreDatabase = load_engine("postgres", "database", "PostgreSQL").PostgresDatabase(
        settings.store, is_pooled, fault_point
    )
    return database
