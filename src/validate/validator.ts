import type { SourceFile } from '../contract/definition.ts';
import type { TrajectoryEntry } from '../contract/report.ts';
import type { ReportedValidation } from '../contract/validation.ts';
import type { Container } from '../engine/container.ts';
import { runModule } from './module.ts';
import { runProgram } from './program.ts';
import type { GradingTrouble } from './trouble.ts';
import { withoutContent } from './without-content.ts';

export interface ValidatorRequest {
  container: Container;
  source: string;
  files: readonly SourceFile[];
  manifest: readonly { index: number; name: string }[];
  capture: boolean;
  /** Absolute folder in the sandbox for the validator and its files. To be one that the harness cannot have known. */
  folder: string;
  workspace: string;
  env: Record<string, string>;
  variables: Record<string, string>;
  trajectory: readonly TrajectoryEntry[];
  timeoutMs: number;
  signal: AbortSignal;
}

export interface ValidatorRun {
  validations: ReportedValidation[];
  trouble?: GradingTrouble | undefined;
}

/**
 * Runs a validator in a sandbox. A source with a shebang runs as that program, and its exit code decides; any other is a
 * JavaScript or TypeScript module that declares named validations with `offsite/validator`.
 */
export async function runValidator(request: ValidatorRequest): Promise<ValidatorRun> {
  const run = request.source.startsWith('#!') ? await runProgram(request) : await runModule(request);
  if (request.capture) return run;
  const { validations, trouble } = run;
  return {
    validations: validations.map(withoutContent),
    trouble: trouble && { kind: trouble.kind, message: trouble.message },
  };
}
