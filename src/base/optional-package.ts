import { OffsiteError } from './offsite-error.ts';

/** A package, or several, that not every installation has, because few people need it and it is large. */
export interface OptionalPackage {
  /** A part of the names of its packages, as Node names a missing one. */
  named: string;
  code: string;
  /** What needs it: the whole message. */
  needs: string;
  /** What `npm install` takes. */
  install: string;
}

/** Loads a module that imports an optional package. Throws an `input` error if that is not installed. */
export async function withPackage<Module>(
  { named, code, needs, install }: OptionalPackage,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const { code: reason = '', message = '' } = error as NodeJS.ErrnoException;
    if (!reason.endsWith('MODULE_NOT_FOUND') || !message.includes(named)) throw error;
    const hint = `Install it beside Offsite: npm install ${install}`;
    throw new OffsiteError(needs, { code, kind: 'input', hint, cause: error });
  }
}
