import { GatewayRefusal } from '../refusal.ts';

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
