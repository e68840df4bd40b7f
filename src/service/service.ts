import { join } from 'node:path';
import type { Logger } from 'pino';
import { serviceRequests } from '../bounds/callers.ts';
import type { Clock } from '../clock.ts';
import type { Integration } from '../contract/catalog.ts';
import { openDatabase } from '../ledger/database.ts';
import { createApplication } from './application.ts';
import { type Listener, type ListenOptions, listen } from './listen.ts';
import type { KeyEntry, KeyPurpose } from './store/keys.ts';
import { migrations } from './store/migrations.ts';
import { createStores } from './store/stores.ts';
import { createWriter } from './store/writer.ts';

export interface ServiceOptions {
  /** Holds service.db, which is made where it is not there. Several processes may open it at once. */
  dataFolder: string;
  clock: Clock;
  /** What `connectors.integrations` answers. */
  integrations: readonly Integration[];
  /** One line a request; none without it. Keys are not in it. */
  log?: Logger;
}

/** The embedded Eval Service. */
export interface Service extends AsyncDisposable {
  /** Answers requests over HTTP, on any free port of the loopback address unless told otherwise. */
  listen(options?: ListenOptions): Promise<{ url: string; port: number }>;
  /** Answers a request in this process. */
  fetch(request: Request): Promise<Response>;
  /** Adds a key whose secret is given; nothing changes where it is there already. */
  seedKey(secret: string, purpose: KeyPurpose): KeyEntry;
  /** Makes a key; its secret is not to be had again. */
  createKey(purpose: KeyPurpose): KeyEntry & { secret: string };
  listKeys(): KeyEntry[];
  /** By the key's id. */
  revokeKey(id: string): KeyEntry;
  /** Lets requests under way end (5 s at most), then closes the database. Calling it again does nothing. */
  close(): Promise<void>;
}

/** Throws an `infrastructure` error where service.db cannot be used: see `openDatabase`. */
export function openService({ dataFolder, clock, integrations, log }: ServiceOptions): Service {
  const database = openDatabase(join(dataFolder, 'service.db'), migrations);
  // In KiB. With SQLite's default of 2 MiB a large database reads its indexes from the file again and again.
  database.exec('PRAGMA cache_size = -65536');
  const stores = createStores(database, () => clock.now());
  const writer = createWriter(database);
  const application = createApplication({
    stores,
    writer,
    integrations,
    clock,
    log,
  });
  const fetch = async (request: Request) => application.fetch(request);
  const listeners: Listener[] = [];
  let closing: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    await Promise.all(listeners.map((listener) => listener.close(serviceRequests.time.close)));
    writer.flush();
    database.close();
  }

  const close = () => {
    closing ??= closeAll();
    return closing;
  };

  return {
    async listen(options = {}) {
      const listener = await listen(fetch, options, clock);
      listeners.push(listener);
      return { url: listener.url, port: listener.port };
    },
    fetch,
    seedKey: stores.keys.seed,
    createKey: stores.keys.create,
    listKeys: stores.keys.list,
    revokeKey: stores.keys.revoke,
    close,
    [Symbol.asyncDispose]: close,
  };
}
