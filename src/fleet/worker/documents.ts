import { fleetStorage } from '../../bounds/fleet.ts';
import type { Config } from '../../suite/config-file.ts';
import { type FleetDocument, getDocument } from '../document.ts';
import type { FleetStorage } from '../storage/storage.ts';

/** Reads the documents of batches, and keeps the ones that were used last. */
export class Documents {
  readonly #storage: FleetStorage;
  readonly #config: () => Config;
  readonly #folderOf: (context: string) => string;
  readonly #kept = new Map<string, Promise<FleetDocument>>();

  /** @param folderOf where a build context is unpacked */
  constructor(storage: FleetStorage, config: () => Config, folderOf: (context: string) => string) {
    this.#storage = storage;
    this.#config = config;
    this.#folderOf = folderOf;
  }

  /** Throws as {@link getDocument} does. */
  get(sha256: string): Promise<FleetDocument> {
    const document =
      this.#kept.get(sha256) ?? getDocument(sha256, this.#storage, this.#config(), this.#folderOf);
    this.#kept.delete(sha256);
    this.#kept.set(sha256, document);
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= fleetStorage.count.documents) break;
      this.#kept.delete(oldest);
    }
    document.catch(() => this.#kept.delete(sha256));
    return document;
  }
}
