import type { Integration } from '../../contract/catalog.ts';
import type { Piece } from '../json-response.ts';
import type { PlatformRequest } from '../platform.ts';
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

/** Work with places at which others may be served before it continues. */
export type Steps<Result> = Generator<void, Result>;

/** How an operation is answered: at once, in pieces, or after a change, which may take steps to prepare. */
export type Reply<Response> =
  | { response: Response }
  | JsonPieces
  | Change<Response>
  | Steps<Change<Response>>;

/** A request that writes, checked and ready to be written. */
export interface Change<Response> {
  /** The batch that the platform itself is to run, if the request is for one. It is asked about it first. */
  batch?: PlatformRequest | undefined;
  /**
   * What a long change writes before it, each in a transaction of its own, so that others are served in
   * between. Nobody sees it before the change: if the service ends first, it is as if nobody had asked.
   */
  before?: Iterable<() => void>;
  /** Runs in a transaction; throws an `ApiError` to refuse. Its result is the answer after the commit. */
  change: () => Response;
}

/** An answer that is built while it is sent: pieces of one JSON text. */
export interface JsonPieces {
  pieces: Iterable<Piece>;
}
