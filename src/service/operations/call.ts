import type { Integration } from '../../contract/catalog.ts';
import type { Piece } from '../json-response.ts';
import type { Principal } from '../store/keys.ts';
import type { Stores } from '../store/stores.ts';

/** What a handler gets in addition to its request. */
export interface Call {
  stores: Stores;
  principal: Principal;
  /** The identifiers of the platform's trials that run in this process. */
  inProgress: ReadonlySet<string>;
  integrations: readonly Integration[];
  /** Epoch milliseconds. */
  now: number;
}

/** An answer that is built while it is sent: pieces of one JSON text. */
export interface JsonPieces {
  pieces: Iterable<Piece>;
}
