import type { Wire } from '../../suite/model-config.ts';
import { GatewayRefusal } from '../refusal.ts';
import type { Upstream } from '../upstream.ts';
import type { JsonObject } from '../wires/lenient.ts';
import type { Role } from './cassette.ts';

/** No recorded exchange answers a request. */
export class ReplayMiss extends GatewayRefusal {
  /** What a person needs to know. The client does not get this: it quotes what was recorded. */
  readonly detail: string;
  /** What that person can do. */
  readonly advice: string;

  constructor(detail: string, advice = `${recordAgain.slice(0, -1)}, or use --on-miss live.`) {
    super(400, 'REPLAY_MISS', 'there is no recorded answer for this request');
    this.detail = detail;
    this.advice = advice;
  }
}

export const recordAgain = 'The harness, the case or the sandbox has changed since. Record it again.';

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
