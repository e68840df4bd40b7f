/**
 * The name in the ledger of the embedded service's own part: the batches that it runs itself, as a platform
 * does. Their results are handed to the service and never reported.
 */
export const platformService = 'platform';

/** The lock that the executor of platform batches holds while it runs. It guards all of their trials. */
export const platformLock = 'platform';

/** The lock that `offsite serve` also holds, so that other commands know that it runs their batches. */
export const servingLock = 'serving';

/** The lock of the first `offsite serve` of a data folder, so that a further one says it is not alone. */
export const listeningLock = 'listening';

/**
 * The name in the ledger of the service that runs inside the commands of this data folder, and ends with
 * them.
 */
export const embeddedService = 'embedded';

/**
 * The name in the ledger under which batches stand that came from elsewhere: from evidence, or from the logs
 * of another program. They are shown and compared, and never run or reported.
 */
export const foreignService = 'foreign';
