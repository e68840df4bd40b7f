import { Refusal } from '../refusal.ts';

/** No recorded exchange answers a request. */
export class ReplayMiss extends Refusal {
  /** What a person needs to know. The client does not get this: it quotes what was recorded. */
  readonly detail: string;

  constructor(detail: string) {
    super(400, 'REPLAY_MISS', 'there is no recorded answer for this request');
    this.detail = detail;
  }
}
