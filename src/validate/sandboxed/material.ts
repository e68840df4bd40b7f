import { validatorRecords } from '../../bounds/grading.ts';

/**
 * Throws if the material exceeds the limit for models. The agent made the material, so too much of it must
 * fail the validation and not leave the trial without a verdict.
 */
export function refuseLarge(material: string | Record<string, string> | undefined): void {
  const texts = typeof material === 'string' ? [material] : Object.values(material ?? {});
  const characters = texts.reduce((sum, text) => sum + String(text).length, 0);
  if (characters <= validatorRecords.bytes.material) return;
  throw new Error(
    `the material has ${characters} characters, but the limit is ${validatorRecords.bytes.material}`,
  );
}
