import { OffsiteError } from '../base/offsite-error.ts';

/**
 * Loads a module that imports packages of Temporal, which are optional: they are larger than all else
 * together. Throws `TEMPORAL_MISSING` if they are not installed.
 */
export async function withTemporal<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const { code, message = '' } = error as NodeJS.ErrnoException;
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    if (!isMissing || !message.includes('@temporalio/')) throw error;
    throw new OffsiteError('the fleet needs the packages of Temporal, which are not installed', {
      code: 'TEMPORAL_MISSING',
      kind: 'input',
      hint:
        'Install them beside Offsite: npm install @temporalio/client @temporalio/worker ' +
        '@temporalio/workflow @temporalio/activity @temporalio/common',
      cause: error,
    });
  }
}
