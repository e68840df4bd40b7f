import { validatorRecords } from '../../bounds/grading.ts';

/**
 * Throws for more than models are asked about. Material is what the agent made: that there is too much of it
 * must fail the validation, not leave the trial without a verdict.
 */
export function refuseLarge(material: string | Record<string, string> | undefined): void {
  const texts = typeof material === 'string' ? [material] : Object.values(material ?? {});
  const characters = texts.reduce((sum, text) => sum + String(text).length, 0);
  if (characters <= validatorRecords.bytes.material) return;
  throw new Error(
    `the material has ${characters} characters; a model is asked about ${validatorRecords.bytes.material} at most`,
  );
}
