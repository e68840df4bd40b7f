import { OffsiteError } from '../../offsite-error.ts';

/** An answer that is no answer of its wire, or one that another wire cannot express. */
export class UnreadableAnswer extends OffsiteError {
  constructor(message: string) {
    super(message, { code: 'MODEL_ANSWER_UNREADABLE', kind: 'infrastructure' });
  }
}
