import { OffsiteError } from '../../base/offsite-error.ts';

/** An answer that is not valid on its wire, or that another wire cannot express. */
export class UnreadableAnswer extends OffsiteError {
  constructor(message: string) {
    super(message, { code: 'MODEL_ANSWER_UNREADABLE', kind: 'infrastructure' });
  }
}

/** An answer that says that the model failed. */
export class ModelFailed extends UnreadableAnswer {}
