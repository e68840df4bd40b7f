import type { Wire } from '../../suite/model-config.ts';
import type { Upstream } from '../upstream.ts';
import type { JsonObject } from '../wires/lenient.ts';
import type { Role } from './cassette.ts';

/** Recorded answers to the requests to one model of one session. */
export interface Recording {
  /**
   * What answers a request, in the request's wire: a recorded answer, or the live model. Throws a ReplayMiss
   * if neither may.
   */
  answer(asked: AskedRequest): Upstream | 'live';
}

/** A request of a client, as its recorded answer is looked for. */
export interface AskedRequest {
  role: Role;
  wire: Wire;
  json: JsonObject;
  bytes: number;
  streamed: boolean;
  purpose: 'answer' | 'count';
  /** Its place among the exchanges of its trial, from 1. */
  number: number;
}
