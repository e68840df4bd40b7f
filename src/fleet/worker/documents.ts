import { fleetStorage } from '../../bounds/fleet.ts';
import type { Config } from '../../suite/config-file.ts';
import {
  type FleetDocument,
  type FoundDocument,
  getDocument,
  requirePlanned,
  type TrialDocument,
} from '../document.ts';
import type { FleetStorage } from '../storage/storage.ts';

/** Reads the documents of batches, and keeps the ones that were used last. */
export class Documents {
  readonly #storage: FleetStorage;
  readonly #config: () => Config;
  readonly #kept = new Map<string, Promise<TrialDocument>>();

  constructor(storage: FleetStorage, config: () => Config) {
    this.#storage = storage;
    this.#config = config;
  }

  /** Throws as {@link getDocument} does. */
  get(sha256: string): Promise<TrialDocument> {
    const document = this.#kept.get(sha256) ?? getDocument(sha256, this.#storage, this.#config());
    this.#kept.delete(sha256);
    this.#kept.set(sha256, document);
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= fleetStorage.count.documents) break;
      this.#kept.delete(oldest);
    }
    document.catch(() => this.#kept.delete(sha256));
    return document;
  }

  /** The document of a batch. Throws `FLEET_DOCUMENT_UNREADABLE` for another one too. */
  async planned(sha256: string): Promise<FleetDocument> {
    return requirePlanned(await this.get(sha256));
  }

  /** The batch that a run was found in, if a fleet was given that. */
  async plannedFor({ planned }: FoundDocument): Promise<FleetDocument | undefined> {
    return planned === undefined ? undefined : this.planned(planned);
  }
}
