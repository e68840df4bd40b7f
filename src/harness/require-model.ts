import { OffsiteError } from '../offsite-error.ts';
import type { HarnessContext, ModelAccess } from './runner.ts';

/** The model of a harness that cannot do without. Throws an `input` error where there is none. */
export function requireModel(label: string, { model }: HarnessContext): ModelAccess {
  if (model !== undefined) return model;
  throw new OffsiteError(`${label} needs a model, and none is configured that its sandbox can reach`, {
    code: 'MODEL_NEEDED',
    kind: 'input',
    hint: 'Describe the model under models in offsite.yaml, and use a sandbox whose network is not none.',
  });
}
