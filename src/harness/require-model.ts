import { OffsiteError } from '../base/offsite-error.ts';
import type { HarnessContext, ModelAccess } from './runner.ts';

/** Returns the model of a harness that needs one. Throws an `input` error if there is none. */
export function requireModel(label: string, { model }: HarnessContext): ModelAccess {
  if (model !== undefined) return model;
  throw new OffsiteError(`${label} needs a model, but no model is configured that its sandbox can reach`, {
    code: 'MODEL_NEEDED',
    kind: 'input',
    hint: 'Describe the model under models in offsite.yaml, and use a sandbox whose network is not none.',
  });
}
