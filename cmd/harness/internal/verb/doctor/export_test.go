package doctor

// Examination is what --output json prints.
type Examination = examination
